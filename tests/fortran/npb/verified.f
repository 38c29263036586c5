! SPDX-License-Identifier: BSD-3-Clause
! Integers and reals in one file, by mpif.h, as the benchmarks have them.
      program verified
      implicit none
      include 'mpif.h'
      include 'npbparams.h'
      integer rank, ranks, total, ierror, part
      double precision sum
      external part
      call MPI_Init(ierror)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
      call MPI_Allreduce(part(rank), total, 1, MPI_INTEGER, MPI_SUM,
     &     MPI_COMM_WORLD, ierror)
      call MPI_Allreduce(dble(rank), sum, 1, MPI_DOUBLE_PRECISION,
     &     MPI_SUM, MPI_COMM_WORLD, ierror)
      if (rank .eq. 0) then
         print *, name, ' ', class, ranks
         if (ranks .eq. 4 .and. total .eq. 6 .and. sum .eq. 6d0) then
            print *, 'Verification    =               SUCCESSFUL'
         else
            print *, 'Verification    =             UNSUCCESSFUL'
         end if
      end if
      call MPI_Finalize(ierror)
      end

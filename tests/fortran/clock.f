! SPDX-License-Identifier: BSD-3-Clause
! mpif.h in lines that both source forms take: times, whatever the compiler was
! told to take for DOUBLE PRECISION.
      program clock
      implicit none
      include 'mpif.h'
      integer ierror
      call MPI_Init(ierror)
      if (kind(MPI_Wtime()) /= 8 .or. kind(PMPI_Wtick()) /= 8) stop 1
      if (MPI_Wtime() < 1 .or. PMPI_Wtime() - MPI_Wtime() > 1) stop 2
      if (MPI_Wtick() <= 0 .or. PMPI_Wtick() > 1) stop 3
      print '(a)', 'No Errors'
      call MPI_Finalize(ierror)
      end program

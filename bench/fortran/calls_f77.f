! SPDX-License-Identifier: BSD-3-Clause
      subroutine rounds_f77(comm, n)
      implicit none
      include 'mpif.h'
      integer comm, n, i, ierror
      double precision x(1)
      x(1) = 1
      do i = 1, n
        call MPI_SEND(x, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0,
     &                comm, ierror)
      end do
      end

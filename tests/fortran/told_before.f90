! SPDX-License-Identifier: BSD-3-Clause
! A library in Fortran that told_before.c loads.
subroutine starts() bind(C)
  use mpi_f08
  implicit none
  call MPI_Init()
  print '(a)', 'No Errors'
  call MPI_Finalize()
end subroutine

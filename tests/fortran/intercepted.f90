! SPDX-License-Identifier: BSD-3-Clause
! A program whose MPI_Comm_rank and MPI_Send a Fortran tool replaces.
program intercepted
  use mpi_f08
  implicit none
  integer, external :: tool_calls
  integer :: rank, x(1)
  x = 5
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Send(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  if (tool_calls() == 11 .and. rank == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
end program

! SPDX-License-Identifier: BSD-3-Clause
! The part of together.f90 that uses the module mpi.
integer function from_mpi(comm)
  use mpi
  implicit none
  integer, intent(in) :: comm
  integer :: n, ierror
  n = 1
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
  call MPI_Recv(n, 1, MPI_INTEGER, MPI_PROC_NULL, 0, comm, &
    MPI_STATUS_IGNORE, ierror)
  from_mpi = n - 2
end function

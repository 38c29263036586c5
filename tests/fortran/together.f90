! SPDX-License-Identifier: BSD-3-Clause
! One program of files that use mpi_f08, mpi and mpif.h: constants that are
! known by their address are the same in all, and handles are equal.
program together
  use mpi_f08
  implicit none
  integer, external :: from_f77, from_mpi
  integer :: rank, errors
  type(MPI_Comm) :: comm
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call other_scope(comm%MPI_VAL)
  errors = from_f77(comm%MPI_VAL) + from_mpi(comm%MPI_VAL)
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, comm)
  call MPI_Recv(errors, 1, MPI_INTEGER, MPI_PROC_NULL, 0, comm, &
    MPI_STATUS_IGNORE)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Comm_free(comm)
  call MPI_Finalize()
  if (errors /= 0) stop 1
end program

! Another scope of the file uses the other module.
subroutine other_scope(comm)
  use mpi
  implicit none
  integer :: comm, ierror
  call MPI_Barrier(comm, ierror)
  call MPI_Recv(comm, 1, MPI_INTEGER, MPI_PROC_NULL, 0, comm, &
    MPI_STATUS_IGNORE, ierror)
end subroutine

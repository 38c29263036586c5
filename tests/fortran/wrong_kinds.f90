! SPDX-License-Identifier: BSD-3-Clause
! Not to be compiled: arguments and procedures of other kinds than MPI's, one
! mistake for each macro.
program wrong_kinds
#ifdef MODULE
  use mpi
  implicit none
  integer :: op, request, ierror
#else
  use mpi_f08
  implicit none
  type(MPI_Op) :: op
  type(MPI_Request) :: request
  integer :: ierror
#endif
#ifdef FLAG
  logical(2) :: flag
#else
  logical(8) :: flag
#endif
  request = MPI_REQUEST_NULL
  call MPI_Init(ierror)
#ifdef OPERATION
  call MPI_Op_create(add, .true., op, ierror)
#elif defined(COMMUTES)
  call MPI_Op_create(add, .true._16, op, ierror)
#else
  call MPI_Test(request, flag, MPI_STATUS_IGNORE, ierror)
#endif
  call MPI_Finalize(ierror)
contains
  subroutine add(in, inout, len, type)
    double precision :: in, inout
    integer(8) :: len
    integer :: type
    inout = inout + in * real(len + type)
  end subroutine
end program

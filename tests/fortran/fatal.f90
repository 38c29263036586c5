! SPDX-License-Identifier: BSD-3-Clause
! Errors that end the job, by the name that the program is given.
program fatal
#if defined(F08)
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Datatype) :: type
  type(MPI_Request) :: request
  type(MPI_Win) :: win
  type(MPI_Comm) :: gone
  type(MPI_Datatype) :: gone_type
#else
  implicit none
  include 'mpif.h'
  integer :: comm, type, request, win, ierror
#endif
  integer, asynchronous :: a(8)
  character(len=20) :: name
  integer(MPI_ADDRESS_KIND), parameter :: size = 32

  comm = MPI_COMM_WORLD
  type = MPI_INTEGER
  call get_command_argument(1, name)
#if defined(F08)
  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  gone = comm
  call MPI_Comm_free(comm)
  comm = MPI_COMM_WORLD
  call MPI_Type_contiguous(2, MPI_INTEGER, type)
  call MPI_Type_commit(type)
  gone_type = type
  call MPI_Type_free(type)
  select case (name)
  case ('psend')
    call MPI_Psend_init(a(::2), 1, 4_MPI_COUNT_KIND, MPI_INTEGER, 0, 0, &
      MPI_COMM_WORLD, MPI_INFO_NULL, request)
  case ('window')
    call MPI_Win_create(a(::2), size, 1, MPI_INFO_NULL, comm, win)
  case ('comm')
    comm%MPI_VAL = 123456
    call MPI_Send(a, 1, MPI_INTEGER, 0, 0, comm)
  case ('type')
    type%MPI_VAL = -7
    call MPI_Send(a(::2), 1, type, 0, 0, comm)
  case ('neighbors')
    comm%MPI_VAL = 123456
    call MPI_Alltoall(a, 1, MPI_INTEGER, a, 1, MPI_INTEGER, comm)
  case ('gone_type')
    call MPI_Send(a(::2), 1, gone_type, 0, 0, comm)
  case ('gone_gather')
    call MPI_Gather(a(::2), 1, gone_type, a, 1, MPI_INTEGER, 0, comm)
  case ('gone_comm')
    call MPI_Reduce(a(::2), a(::2), 1, MPI_INTEGER, MPI_SUM, 0, gone)
  case ('gone_near')
    call MPI_Neighbor_allgather(a(::2), 1, MPI_INTEGER, a(::2), 1, MPI_INTEGER, gone)
  case ('gone_long')
    call MPI_Send(a(::2), 9, MPI_INTEGER, 0, 0, gone)
  end select
  call MPI_Finalize()
#else
  call MPI_Init(ierror)
  select case (name)
  case ('comm')
    call MPI_Send(a, 1, MPI_INTEGER, 0, 0, 123456, ierror)
  case ('small')
    call MPI_Send(a, 1, MPI_INTEGER, 0, 0, 77, ierror)
  case ('request')
    request = 5000
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  case ('another')
    call MPI_Send(a, 1, MPI_COMM_WORLD, 0, 0, comm, ierror)
  end select
  call MPI_Finalize(ierror)
#endif
end program

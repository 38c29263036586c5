! SPDX-License-Identifier: BSD-3-Clause
! Run over a libmpi_abi that does nothing but print its calls (stub.py): what
! the Fortran library asks of C.
program over_stub
  use mpi_f08
  implicit none
  integer :: a(4, 4), b(8), n
  integer, asynchronous :: c(4)
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request
  type(MPI_Datatype) :: types(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, n)
  comm%MPI_VAL = 4097
  call MPI_Send(a, 16, MPI_INTEGER, 1, 2, comm)
  call MPI_Send(a(1, :), 4, MPI_INTEGER, 1, 2, comm)
  call MPI_Recv(b(::2), 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &
    MPI_STATUS_IGNORE)
  call MPI_Isend(c, 4_MPI_COUNT_KIND, MPI_INTEGER, 1, 2, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Allreduce(MPI_IN_PLACE, b, 8, MPI_INTEGER, MPI_SUM, comm)
  types = [MPI_INTEGER, MPI_REAL]
  call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, &
    8_MPI_ADDRESS_KIND], types, types(1))
  call MPI_Comm_set_name(comm, 'name   ')
  call PMPI_Barrier(comm)
  call spawn_f08
  call spawn_mpi
  call spawn_header
  call MPI_Finalize()
end program

! The constants of spawning, and arguments that end with a blank one.
subroutine spawn_f08
  use mpi_f08
  implicit none
  character(len=6) :: commands(2), args(3), lists(2, 3)
  integer :: codes(2)
  type(MPI_Comm) :: made
  type(MPI_Info) :: infos(2)
  commands = [character(len=6) :: 'prog', 'other']
  args = [character(len=6) :: 'a  b', ' c', ' ']
  lists = reshape([character(len=6) :: 'x', ' ', 'y', ' ', ' ', ' '], [2, 3])
  infos = MPI_INFO_NULL
  call MPI_Comm_spawn('prog  ', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, &
    MPI_COMM_SELF, made, MPI_ERRCODES_IGNORE)
  call MPI_Comm_spawn('prog', args, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, made, &
    codes)
  call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, [1, 1], infos, 0, &
    MPI_COMM_SELF, made, MPI_ERRCODES_IGNORE)
  call MPI_Comm_spawn_multiple(2, commands, lists, [1, 1], infos, 0, &
    MPI_COMM_SELF, made, codes)
end subroutine

subroutine spawn_mpi
  use mpi
  implicit none
  character(len=6) :: commands(2), args(3), lists(2, 3)
  integer :: codes(2), made, infos(2), ierror
  commands = [character(len=6) :: 'prog', 'other']
  args = [character(len=6) :: 'a  b', ' c', ' ']
  lists = reshape([character(len=6) :: 'x', ' ', 'y', ' ', ' ', ' '], [2, 3])
  infos = MPI_INFO_NULL
  call MPI_Comm_spawn('prog  ', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, &
    MPI_COMM_SELF, made, MPI_ERRCODES_IGNORE, ierror)
  call MPI_Comm_spawn('prog', args, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, made, &
    codes, ierror)
  call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, [1, 1], infos, 0, &
    MPI_COMM_SELF, made, MPI_ERRCODES_IGNORE, ierror)
  call MPI_Comm_spawn_multiple(2, commands, lists, [1, 1], infos, 0, &
    MPI_COMM_SELF, made, codes, ierror)
end subroutine

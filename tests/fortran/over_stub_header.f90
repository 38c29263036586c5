! SPDX-License-Identifier: BSD-3-Clause
! The part of over_stub.f90 that uses mpif.h.
subroutine spawn_header
  implicit none
  include 'mpif.h'
  character(len=6) :: commands(2), args(3), lists(2, 3)
  integer :: codes(2), made, infos(2), requests(2), ierror
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
  ! What is meant by the constant that stands beside the right one.
  requests = MPI_REQUEST_NULL
  call MPI_Waitall(2, requests, MPI_STATUS_IGNORE, ierror)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  call MPI_Comm_spawn('prog', MPI_ARGVS_NULL, 1, MPI_INFO_NULL, 0, &
    MPI_COMM_SELF, made, MPI_ERRCODES_IGNORE, ierror)
  call MPI_Comm_spawn_multiple(2, commands, MPI_ARGV_NULL, [1, 1], infos, 0, &
    MPI_COMM_SELF, made, MPI_ERRCODES_IGNORE, ierror)
end subroutine

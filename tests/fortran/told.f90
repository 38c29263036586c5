! SPDX-License-Identifier: BSD-3-Clause
! Sections whose datatypes the library keeps, arrays that are too small, and a
! datatype that the program forgets: what tools tell of it names lines of this
! file, and nothing else.
program told
#if defined(F08)
  use mpi_f08
  implicit none
  type(MPI_Datatype) :: forgotten
  type(MPI_Status) :: status
#elif defined(MODULE)
  use mpi
  implicit none
  integer :: forgotten, status(MPI_STATUS_SIZE)
#else
  implicit none
  include 'mpif.h'
  integer :: forgotten, status(MPI_STATUS_SIZE)
#endif
  integer :: a(4, 4), b(4, 4), room(12), i, rank, size, to, from, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  to = mod(rank + 1, size)
  from = mod(rank + size - 1, size)
  a = rank
  do i = 1, 4
    call MPI_Sendrecv(a(i, :), 4, MPI_INTEGER, to, 0, b(i, :), 4, MPI_INTEGER, from, 0, MPI_COMM_WORLD, status, ierror) ! @send
  end do
  room = 0
  do i = 1, 2
    call MPI_Bcast(room(1:3), 5, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror) ! @small
  end do
  call MPI_Gather(rank, 1, MPI_INTEGER, room(1:1 + 2 * rank), 1, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
  call MPI_Gather(room, 2, MPI_INTEGER, room(6:8), 2, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror) ! @gathered
  call MPI_Exscan(a, room(1:2 + rank), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call old(room)
  call MPI_Type_contiguous(3, MPI_INTEGER, forgotten, ierror) ! @forgotten
  call MPI_Finalize(ierror)

contains

  subroutine old(x)
    integer :: x(1) ! of as many elements as the caller's
    call MPI_Bcast(x, 5, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  end subroutine
end program

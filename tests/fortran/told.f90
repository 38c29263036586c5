! SPDX-License-Identifier: BSD-3-Clause
! Sections whose datatypes the library keeps, and a datatype that the program
! forgets: what tools tell of it names lines of this file, and nothing else.
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
  integer :: a(4, 4), b(4, 4), i, rank, size, to, from, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  to = mod(rank + 1, size)
  from = mod(rank + size - 1, size)
  a = rank
  do i = 1, 4
    call MPI_Sendrecv(a(i, :), 4, MPI_INTEGER, to, 0, b(i, :), 4, MPI_INTEGER, from, 0, MPI_COMM_WORLD, status, ierror) ! @send
  end do
  call MPI_Type_contiguous(3, MPI_INTEGER, forgotten, ierror) ! @forgotten
  call MPI_Finalize(ierror)
end program

! SPDX-License-Identifier: BSD-3-Clause
! mpif.h in free form, in a module and in procedures.
module uses_header
  implicit none
  include 'mpif.h'
contains
  subroutine give(rank)
    integer, intent(in) :: rank
    integer :: ierror
    real :: x(2)
    integer :: n
    x = rank
    n = rank
    call MPI_Bcast(x, 2, MPI_REAL, 0, MPI_COMM_WORLD, ierror)
    call MPI_Bcast(n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (n /= 0 .or. any(x /= 0)) stop 1
  end subroutine
end module

program header_free
  use uses_header, only: give
  implicit none
  include 'mpif.h'
  integer :: rank, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call give(rank)
  if (rank == 0) print '(a)', 'No Errors'
  call MPI_Finalize(ierror)
end program

! SPDX-License-Identifier: BSD-3-Clause
! Ping-pong of array sections; the shortest of many rounds, in us one way.
! The same shapes as in section.c.
program section
  use mpi_f08
  implicit none
  integer, parameter :: rows = 1024, columns = 256, turns = 300
  double precision, allocatable :: a(:, :)
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  allocate (a(rows, columns))
  a = 1
  call go('every-2nd', a(1:512:2, 1:1))
  call go('one-row', a(1:1, :))
  call go('halo-2', a(1:2, :))
  call go('block', a(1:512, :))
  call go('chequer', a(::2, ::2))
  call MPI_Finalize()
contains
  subroutine go(name, x)
    character(*), intent(in) :: name
    double precision, intent(inout) :: x(:, :)
    double precision :: best, t
    integer :: i
    best = huge(best)
    do i = 1, turns
      t = MPI_Wtime()
      if (rank == 0) then
        call MPI_Send(x, size(x), MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD)
        call MPI_Recv(x, size(x), MPI_DOUBLE_PRECISION, 1, 0, &
          MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      else
        call MPI_Recv(x, size(x), MPI_DOUBLE_PRECISION, 0, 0, &
          MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call MPI_Send(x, size(x), MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD)
      end if
      best = min(best, MPI_Wtime() - t)
    end do
    if (rank == 0) print '(a, f12.3)', name, best / 2 * 1d6
  end subroutine
end program

! SPDX-License-Identifier: BSD-3-Clause
! What a call costs through mpi_f08, through mpif.h and in C: an 8-byte send
! to nobody, so that only the call itself is timed. Prints the shortest of
! many rounds, in ns a call; the three take turns, so that all of them meet
! the machine's quiet moments.
module calls_f08
contains
  subroutine rounds_f08(comm, n)
    use mpi_f08
    implicit none
    integer, intent(in) :: comm, n
    type(MPI_Comm) :: c
    double precision :: x(1)
    integer :: i
    c%MPI_VAL = comm
    x = 1
    do i = 1, n
      call MPI_Send(x, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, c)
    end do
  end subroutine
end module

program calls
  use mpi_f08
  use calls_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine rounds_c(comm, n) bind(C)
      import :: c_int
      integer(c_int), value :: comm, n
    end subroutine
  end interface
  integer, parameter :: n = 2000, turns = 500
  external :: rounds_f77
  type(MPI_Comm) :: made
  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, made)
  call measure('MPI_COMM_WORLD', MPI_COMM_WORLD%MPI_VAL)
  call measure('duplicate', made%MPI_VAL)
  call MPI_Comm_free(made)
  call MPI_Finalize()
contains
  subroutine measure(name, comm)
    character(*), intent(in) :: name
    integer, intent(in) :: comm
    double precision :: best(3), t
    integer :: i
    best = huge(best)
    do i = 1, turns
      t = MPI_Wtime()
      call rounds_c(comm, n)
      best(1) = min(best(1), MPI_Wtime() - t)
      t = MPI_Wtime()
      call rounds_f08(comm, n)
      best(2) = min(best(2), MPI_Wtime() - t)
      t = MPI_Wtime()
      call rounds_f77(comm, n)
      best(3) = min(best(3), MPI_Wtime() - t)
    end do
    print '(a, 3f9.2)', name, best / n * 1d9
  end subroutine
end program

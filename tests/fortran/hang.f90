! SPDX-License-Identifier: BSD-3-Clause
! A receive that nobody sends to, in a procedure of its own.
subroutine await_nobody
#ifdef F08
    use mpi_f08
#else
    use mpi
#endif
    implicit none
    integer :: value, ierror

    call MPI_Recv(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &
                  MPI_STATUS_IGNORE, ierror)
    print *, value
end subroutine

program hang
#ifdef F08
    use mpi_f08
#else
    use mpi
#endif
    implicit none
    integer :: ierror

    call MPI_Init(ierror)
    call await_nobody
    call MPI_Finalize(ierror)
end program

! SPDX-License-Identifier: BSD-3-Clause
! Threads wait for sections that are copied: a request that one has completed
! may have its handle again in another thread at once, and the copies of either
! stay its own.
program sections_threads
    use mpi_f08
    implicit none
    integer, parameter :: threads = 4, rounds = 5000
    integer :: t, level
    integer :: wrong

    wrong = 0
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, level)
    if (level /= MPI_THREAD_MULTIPLE) call MPI_Abort(MPI_COMM_WORLD, 1)
    !$omp parallel do num_threads(threads) schedule(static, 1) &
    !$omp reduction(+:wrong)
    do t = 0, threads - 1
        call speak(t, wrong)
    end do
    if (wrong == 0) print '(a)', 'No Errors'
    if (wrong /= 0) print '(i0,a)', wrong, ' sections are wrong'
    call MPI_Finalize()

contains

    subroutine speak(tag, wrong)
        integer, intent(in) :: tag
        integer, intent(inout) :: wrong
        integer :: given(2), i, found, index
        integer, asynchronous :: taken(4, 4)
        logical :: flag
        type(MPI_Request) :: requests(1)
        type(MPI_Datatype) :: every_second

        call MPI_Type_vector(2, 1, 2, MPI_INTEGER, every_second)
        call MPI_Type_commit(every_second)
        do i = 1, rounds
            given = i
            taken = 0
            call MPI_Irecv(taken(2, :), 1, every_second, 0, tag, &
                           MPI_COMM_SELF, requests(1))
            call MPI_Send(given, 2, MPI_INTEGER, 0, tag, MPI_COMM_SELF)
            select case (mod(i, 4))
            case (0)
                call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
            case (1)
                call MPI_Waitall(1, requests, MPI_STATUSES_IGNORE)
            case (2)
                call MPI_Waitany(1, requests, index, MPI_STATUS_IGNORE)
            case (3)
                flag = .false.
                do while (.not. flag)
                    call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE)
                end do
            end select
            found = count(taken(2, 1::2) == i) + count(taken == 0)
            if (found /= 16) wrong = wrong + 1
        end do
        call MPI_Type_free(every_second)
    end subroutine
end program

! SPDX-License-Identifier: BSD-3-Clause
! Two threads of a process open files by names for whose conversion there is no
! memory, at the same time: each error is heard once, and MPI_FILE_NULL keeps
! its handler.
program agreed_threads
  use mpi_f08
  use omp_lib, only: omp_get_thread_num
  implicit none
  interface
    subroutine no_memory_arm(which) bind(C)
      use iso_c_binding, only: c_int
      integer(c_int), value :: which
    end subroutine
    function no_memory_disarm() bind(C)
      use iso_c_binding, only: c_int
      integer(c_int) :: no_memory_disarm
    end function
  end interface
  integer, parameter :: culprit = 1
  integer :: rank, provided, reached, heard = 0, wrong = 0
  type(MPI_Comm) :: comm(2)
  type(MPI_Errhandler) :: handler, found

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm(1))
  call MPI_Comm_dup(MPI_COMM_WORLD, comm(2))
  call MPI_File_create_errhandler(hear, handler)
  call MPI_File_set_errhandler(MPI_FILE_NULL, handler)

  if (rank == culprit) then
    !$omp parallel num_threads(2) private(reached)
    if (omp_get_thread_num() == 0) then
      call open_in(comm(1))
    else
      ! The other one has raised its error, and goes on to wait for rank 0,
      ! which waits for this one.
      reached = 0
      do while (reached == 0)
        !$omp atomic read
        reached = heard
      end do
      call MPI_Send(reached, 0, MPI_INTEGER, 0, 0, MPI_COMM_WORLD)
      call open_in(comm(2))
    end if
    !$omp end parallel
  else
    call MPI_Recv(reached, 0, MPI_INTEGER, culprit, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call open_in(comm(2))
    call open_in(comm(1))
  end if

  call check(heard == 2, 'errors not heard once each')
  call MPI_File_get_errhandler(MPI_FILE_NULL, found)
  call check(found == handler, 'another handler is left')
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD)
  if (rank == 0 .and. wrong == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (wrong /= 0) error stop 1
contains
  subroutine hear(on, code)
    type(MPI_File) :: on
    integer :: code
    if (code == MPI_SUCCESS .or. on /= MPI_FILE_NULL) &
      call check(.false., 'what is heard')
    !$omp atomic
    heard = heard + 1
  end subroutine

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    print '(i0,2a)', rank, ': wrong: ', what
    !$omp atomic
    wrong = wrong + 1
  end subroutine

  ! The culprit's name is too long for room on the stack.
  subroutine open_in(comm)
    type(MPI_Comm), intent(in) :: comm
    character(1000) :: name
    integer :: code
    type(MPI_File) :: fh
    name = '/nowhere'
    if (rank == culprit) then
      name = repeat('/', 900) // 'nowhere'
      call no_memory_arm(1)
    end if
    call MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, fh, code)
    if (rank == culprit) &
      call check(no_memory_disarm() /= 0, 'open needs no memory')
    call check(code /= MPI_SUCCESS, 'no error')
  end subroutine
end program

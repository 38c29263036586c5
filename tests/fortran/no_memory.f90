! SPDX-License-Identifier: BSD-3-Clause
! Memory ends at each allocation of a call in turn. The call, or the one that
! completes it, either says so through an error handler, or all is done that
! should be: sections that were copied are filled when their request is complete.
program no_memory
  use mpi_f08
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
  integer, parameter :: n = 8, sweep_max = 200
  integer :: wrong = 0, heard = 0, i
  integer, target :: from(2 * n), to(2 * n)
  type(MPI_Comm) :: comm, twin
  type(MPI_Errhandler) :: handler
  type(MPI_Datatype) :: pair, types(1) = MPI_INTEGER

  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_SELF, comm)
  call MPI_Comm_create_errhandler(hear, handler)
  call MPI_Comm_set_errhandler(comm, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  call sweep('reduction', reduction, 3)
  call sweep('persistent', persistent, 3)
  call sweep('receive', receive, 2)
  call sweep('exchange', exchange, 4)
  call sweep('duplicate', duplicate, 1)
  call MPI_Type_free(pair)
  call MPI_Errhandler_free(handler)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
  if (wrong == 0) print '(a)', 'No Errors'
contains
  subroutine hear(on, code)
    type(MPI_Comm) :: on
    integer :: code
    if (on /= comm .and. on /= MPI_COMM_SELF) wrong = wrong + 1
    if (code == MPI_SUCCESS) wrong = wrong + 1
    heard = heard + 1
  end subroutine

  subroutine complain(name, which, what)
    character(*), intent(in) :: name, what
    integer, intent(in) :: which
    wrong = wrong + 1
    print '(2a,i0,2a)', name, ', allocation ', which, ': ', what
  end subroutine

  ! At least `least` of the allocations must be ones that the call needs.
  subroutine sweep(name, try, least)
    character(*), intent(in) :: name
    interface
      subroutine try(which, was_reached, code, is_right)
        integer, intent(in) :: which
        logical, intent(out) :: was_reached, is_right
        integer, intent(out) :: code
      end subroutine
    end interface
    integer, intent(in) :: least
    logical :: was_reached, is_right
    integer :: which, code, class, refused
    refused = 0
    do which = 1, sweep_max
      from = [(i, i=1, 2 * n)]
      to = -1
      heard = 0
      call try(which, was_reached, code, is_right)
      if (code == MPI_SUCCESS) then
        if (heard /= 0) call complain(name, which, 'an error and success')
        if (.not. is_right) call complain(name, which, 'data is lost')
      else
        call MPI_Error_class(code, class)
        refused = refused + 1
        if (class /= MPI_ERR_NO_MEM) call complain(name, class, 'its class')
        if (heard /= 1) call complain(name, which, 'not raised once')
      end if
      if (.not. was_reached) exit
    end do
    if (was_reached .or. code /= MPI_SUCCESS) &
      call complain(name, which, 'does not end')
    if (refused < least) call complain(name, refused, 'too few refused')
  end subroutine

  ! Every second element of `to` is what it should be, the others untouched.
  logical function filled()
    filled = all(to(1::2) == from(1::2)) .and. all(to(2::2) == -1)
  end function

  subroutine reduction(which, was_reached, code, is_right)
    integer, intent(in) :: which
    logical, intent(out) :: was_reached, is_right
    integer, intent(out) :: code
    type(MPI_Request) :: request
    call no_memory_arm(which)
    call MPI_Iallreduce(from(::2), to(::2), n, MPI_INTEGER, MPI_SUM, comm, &
      request, code)
    was_reached = no_memory_disarm() /= 0
    if (code == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    is_right = filled()
  end subroutine

  subroutine persistent(which, was_reached, code, is_right)
    integer, intent(in) :: which
    logical, intent(out) :: was_reached, is_right
    integer, intent(out) :: code
    type(MPI_Request) :: request
    is_right = .false.
    call no_memory_arm(which)
    call MPI_Allreduce_init(from(::2), to(::2), n, MPI_INTEGER, MPI_SUM, &
      comm, MPI_INFO_NULL, request, code)
    was_reached = no_memory_disarm() /= 0
    if (code /= MPI_SUCCESS) return
    from = from + 100
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    is_right = filled()
    call MPI_Request_free(request)
  end subroutine

  ! The datatype is larger than the elements: the section is copied.
  subroutine receive(which, was_reached, code, is_right)
    integer, intent(in) :: which
    logical, intent(out) :: was_reached, is_right
    integer, intent(out) :: code
    type(MPI_Request) :: request
    is_right = .false.
    call no_memory_arm(which)
    call MPI_Irecv(to(::2), n / 2, pair, 0, 1, comm, request, code)
    was_reached = no_memory_disarm() /= 0
    if (code /= MPI_SUCCESS) return
    call MPI_Send(from(::2), n, MPI_INTEGER, 0, 1, comm)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    is_right = filled()
  end subroutine

  subroutine exchange(which, was_reached, code, is_right)
    integer, intent(in) :: which
    logical, intent(out) :: was_reached, is_right
    integer, intent(out) :: code
    type(MPI_Request) :: request
    call no_memory_arm(which)
    call MPI_Ialltoallw(from(::2), [n], [0], types, to(::2), [n], [0], &
      types, comm, request, code)
    was_reached = no_memory_disarm() /= 0
    if (code == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    is_right = filled()
  end subroutine

  subroutine duplicate(which, was_reached, code, is_right)
    integer, intent(in) :: which
    logical, intent(out) :: was_reached, is_right
    integer, intent(out) :: code
    type(MPI_Request) :: request
    integer :: result
    is_right = .false.
    twin = MPI_COMM_NULL
    call no_memory_arm(which)
    call MPI_Comm_idup(comm, twin, request, code)
    was_reached = no_memory_disarm() /= 0
    if (code == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    if (code /= MPI_SUCCESS) return
    call MPI_Comm_compare(comm, twin, result)
    is_right = result == MPI_CONGRUENT
    call MPI_Comm_free(twin)
  end subroutine
end program

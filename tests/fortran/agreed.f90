! SPDX-License-Identifier: BSD-3-Clause
! One member's arguments cannot be converted in a collective call on a file
! that exchanges data:
! nobody waits for it, all hear of the error, each once, and the file can be
! used afterwards.
program agreed
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
  integer, parameter :: n = 8, culprit = 1
  integer(MPI_OFFSET_KIND), parameter :: zero = 0
  integer :: rank, wrong = 0, heard = 0, heard_class, length, code, i
  integer, asynchronous :: a(2 * n)
  character(1000) :: name
  character(MPI_MAX_ERROR_STRING) :: words
  type(MPI_File) :: fh
  type(MPI_Datatype) :: pair
  type(MPI_Errhandler) :: handler
  type(MPI_Info) :: exchange
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_File_create_errhandler(hear, handler)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  call get_environment_variable('AGREED_FILE', name, length)

  call MPI_Info_create(exchange)
  call MPI_Info_set(exchange, 'romio_cb_write', 'enable')
  call MPI_Info_set(exchange, 'romio_cb_read', 'enable')
  call MPI_File_set_errhandler(MPI_FILE_NULL, handler)
  call open_by_a_long_name
  call MPI_File_open(MPI_COMM_WORLD, name(1:length), &
    ior(MPI_MODE_RDWR, MPI_MODE_CREATE), exchange, fh)
  call MPI_Info_free(exchange)
  call set_view_by_a_long_name
  a = rank

  ! No datatype says these elements of the section, and a copy could not be
  ! kept up to the end.
  call MPI_File_write_all_begin(fh, a(::2), many(), type(), code)
  call ended('write_all', MPI_ERR_TYPE)
  call MPI_File_write_at_all_begin(fh, zero, a(::2), many(), type(), code)
  call ended('write_at_all', MPI_ERR_TYPE)
  call MPI_File_write_ordered_begin(fh, a(::2), many(), type(), code)
  call ended('write_ordered', MPI_ERR_TYPE)
  call MPI_File_read_all_begin(fh, a(::2), many(), type(), code)
  call ended('read_all', MPI_ERR_TYPE)
  call MPI_File_read_at_all_begin(fh, zero, a(::2), many(), type(), code)
  call ended('read_at_all', MPI_ERR_TYPE)
  call MPI_File_read_ordered_begin(fh, a(::2), many(), type(), code)
  call ended('read_ordered', MPI_ERR_TYPE)

  ! There is no memory for a copy.
  call arm
  call MPI_File_write_all(fh, a(::2), many(), type(), MPI_STATUS_IGNORE, code)
  call disarm('write_all')
  call told('write_all', MPI_ERR_NO_MEM)
  call arm
  call MPI_File_read_at_all(fh, zero, a(::2), many(), type(), &
    MPI_STATUS_IGNORE, code)
  call disarm('read_at_all')
  call told('read_at_all', MPI_ERR_NO_MEM)
  call arm
  call MPI_File_write_ordered(fh, a(::2), many(), type(), MPI_STATUS_IGNORE, &
    code)
  call disarm('write_ordered')
  call told('write_ordered', MPI_ERR_NO_MEM)
  call arm
  call MPI_File_iwrite_all(fh, a(::2), many(), type(), request, code)
  call disarm('iwrite_all')
  if (rank /= culprit) call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  call told('iwrite_all', MPI_ERR_NO_MEM)

  ! The file is as it should be.
  a = [(i, i = 1, 2 * n)] + 100 * rank
  call MPI_File_write_at_all(fh, rank * n * 4_MPI_OFFSET_KIND, a(::2), n, &
    MPI_INTEGER, MPI_STATUS_IGNORE)
  a = -1
  call MPI_File_read_at_all(fh, rank * n * 4_MPI_OFFSET_KIND, a(::2), n, &
    MPI_INTEGER, MPI_STATUS_IGNORE)
  call check(all(a(::2) == [(i, i = 1, 2 * n, 2)] + 100 * rank) .and. &
    all(a(2::2) == -1), 'what is read back')
  call check(heard == 0, 'errors where there are none')
  call MPI_File_close(fh)
  call MPI_Errhandler_free(handler)
  call MPI_Type_free(pair)
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD)
  if (rank == 0 .and. wrong == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (wrong /= 0) error stop 1
contains
  subroutine hear(on, code)
    type(MPI_File) :: on
    integer :: code
    if (code == MPI_SUCCESS) wrong = wrong + 1
    call MPI_Error_class(code, heard_class)
    heard = heard + 1
  end subroutine

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    print '(i0,2a)', rank, ': wrong: ', what
    wrong = wrong + 1
  end subroutine

  ! The culprit's elements are larger than the section's.
  type(MPI_Datatype) function type()
    type = MPI_INTEGER
    if (rank == culprit) type = pair
  end function

  integer function many()
    many = n
    if (rank == culprit) many = n / 2
  end function

  subroutine arm
    if (rank == culprit) call no_memory_arm(1)
  end subroutine

  subroutine disarm(what)
    character(*), intent(in) :: what
    if (rank == culprit) call check(no_memory_disarm() /= 0, what // &
      ': needs no memory')
  end subroutine

  ! The call has returned code, which the handler has heard; at the culprit it
  ! is of the class and says which call it was.
  subroutine told(what, class)
    character(*), intent(in) :: what
    integer, intent(in) :: class
    integer :: of_code, size
    call MPI_Error_class(code, of_code)
    call check(code /= MPI_SUCCESS, what // ': no error')
    call check(heard == 1, what // ': not heard once')
    call check(heard_class == of_code, what // ': another error is heard')
    call MPI_Error_string(code, words, size)
    if (rank == culprit) then
      call check(of_code == class, what // ': its class')
      call check(index(words, what) > 0 .and. (index(words, 'section') > 0 &
        .or. index(words, 'memory') > 0), what // ': ' // words(1:size))
    else
      call check(index(words, 'rank 1') > 0, what // ': does not say whose: ' &
        // words(1:size))
    end if
    heard = 0
  end subroutine

  ! The other members have begun, and hear of it at the end.
  subroutine ended(what, class)
    character(*), intent(in) :: what
    integer, intent(in) :: class
    if (rank /= culprit) then
      call check(code == MPI_SUCCESS, what // ': does not begin')
      select case (what)
      case ('write_all')
        call MPI_File_write_all_end(fh, a(::2), MPI_STATUS_IGNORE, code)
      case ('write_at_all')
        call MPI_File_write_at_all_end(fh, a(::2), MPI_STATUS_IGNORE, code)
      case ('write_ordered')
        call MPI_File_write_ordered_end(fh, a(::2), MPI_STATUS_IGNORE, code)
      case ('read_all')
        call MPI_File_read_all_end(fh, a(::2), MPI_STATUS_IGNORE, code)
      case ('read_at_all')
        call MPI_File_read_at_all_end(fh, a(::2), MPI_STATUS_IGNORE, code)
      case ('read_ordered')
        call MPI_File_read_ordered_end(fh, a(::2), MPI_STATUS_IGNORE, code)
      end select
    end if
    call told(what, class)
  end subroutine

  ! Names that are too long for room on the stack.
  subroutine open_by_a_long_name
    character(1000) :: long
    long = repeat('/', 400) // name(1:length)
    if (rank /= culprit) long = name(1:length)
    call arm
    call MPI_File_open(MPI_COMM_WORLD, long, ior(MPI_MODE_RDWR, &
      MPI_MODE_CREATE), MPI_INFO_NULL, fh, code)
    call disarm('open')
    call told('open', MPI_ERR_NO_MEM)
  end subroutine

  subroutine set_view_by_a_long_name
    character(1000) :: long
    long = 'native'
    if (rank == culprit) long = repeat('native', 100)
    call arm
    call MPI_File_set_view(fh, zero, MPI_INTEGER, MPI_INTEGER, long, &
      MPI_INFO_NULL, code)
    call disarm('set_view')
    call told('set_view', MPI_ERR_NO_MEM)
  end subroutine
end program

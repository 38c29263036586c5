! SPDX-License-Identifier: BSD-3-Clause
! What all three interfaces have, from one source: F08, MODULE or HEADER says
! which. Constants known by their address, procedures that MPI calls, types by
! precision; where sections are allowed, one-sided calls and files with them.
#ifdef F08
#define HANDLE(kind) type(kind)
#define STATUS_OF(name) type(MPI_Status) :: name
#define BUFFER(name) type(c_ptr), value :: name
#else
#define HANDLE(kind) integer
#define STATUS_OF(name) integer :: name(MPI_STATUS_SIZE)
#define BUFFER(name) integer, target :: name(*)
#endif
module procedures
  use, intrinsic :: iso_c_binding
#ifdef F08
  use mpi_f08
#endif
#ifdef MODULE
  use mpi
#endif
  implicit none
#ifdef HEADER
  include 'mpif.h'
#endif
  integer, parameter :: adr = MPI_ADDRESS_KIND
  integer :: copies = 0, deletions = 0, handled = 0, queries = 0, frees = 0
  integer :: conversions = 0
contains
  subroutine add(invec, inoutvec, len, datatype)
    BUFFER(invec)
    BUFFER(inoutvec)
    integer :: len
    HANDLE(MPI_Datatype) :: datatype
#ifdef F08
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = a + b
#else
    inoutvec(1:len) = inoutvec(1:len) + invec(1:len)
#endif
    if (datatype /= MPI_INTEGER) stop 3
  end subroutine
  subroutine copy_comm(old, keyval, extra_state, val_in, val_out, flag, ierror)
    HANDLE(MPI_Comm) :: old
    integer :: keyval, ierror
    integer(kind=adr) :: extra_state, val_in, val_out
    logical :: flag
    if (old == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) stop 4
    val_out = val_in + extra_state
    flag = .true.
    copies = copies + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_comm(comm, keyval, val, extra_state, ierror)
    HANDLE(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(kind=adr) :: val, extra_state
    if (comm == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) stop 5
    if (val == 0 .or. extra_state /= 1000) stop 6
    deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine copy_type(old, keyval, extra_state, val_in, val_out, flag, ierror)
    HANDLE(MPI_Datatype) :: old
    integer :: keyval, ierror
    integer(kind=adr) :: extra_state, val_in, val_out
    logical :: flag
    if (old == MPI_DATATYPE_NULL .or. keyval == MPI_KEYVAL_INVALID) stop 7
    val_out = val_in + extra_state
    flag = .true.
    copies = copies + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_type(datatype, keyval, val, extra_state, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer :: keyval, ierror
    integer(kind=adr) :: val, extra_state
    if (datatype == MPI_DATATYPE_NULL) stop 8
    if (keyval == MPI_KEYVAL_INVALID .or. val == 0 .or. extra_state /= 1000) &
      stop 9
    deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_win(win, keyval, val, extra_state, ierror)
    HANDLE(MPI_Win) :: win
    integer :: keyval, ierror
    integer(kind=adr) :: val, extra_state
    if (win == MPI_WIN_NULL .or. keyval == MPI_KEYVAL_INVALID) stop 10
    if (val /= -5 .or. extra_state /= 1000) stop 11
    deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine on_comm(comm, code)
    HANDLE(MPI_Comm) :: comm
    integer :: code
    if (comm == MPI_COMM_NULL .or. code == MPI_SUCCESS) stop 12
    handled = handled + 1
  end subroutine
  subroutine on_win(win, code)
    HANDLE(MPI_Win) :: win
    integer :: code
    if (win == MPI_WIN_NULL .or. code /= MPI_ERR_OTHER) stop 13
    handled = handled + 10
  end subroutine
  subroutine on_file(file, code)
    HANDLE(MPI_File) :: file
    integer :: code
    if (file == MPI_FILE_NULL .or. code /= MPI_ERR_IO) stop 14
    handled = handled + 100
  end subroutine
  subroutine on_session(session, code)
    HANDLE(MPI_Session) :: session
    integer :: code
    if (session == MPI_SESSION_NULL .or. code /= MPI_ERR_OTHER) stop 15
    handled = handled + 1000
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(kind=adr) :: extra_state
    STATUS_OF(status)
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state), ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
#ifdef F08
    status%MPI_SOURCE = 12
#else
    status(MPI_SOURCE) = 12
#endif
    queries = queries + 1
  end subroutine
  subroutine release(extra_state, ierror)
    integer(kind=adr) :: extra_state
    integer :: ierror
    if (extra_state /= 7) stop 16
    frees = frees + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra_state, complete, ierror)
    integer(kind=adr) :: extra_state
    logical :: complete
    integer :: ierror
    if (.not. complete .or. extra_state /= 7) stop 17
    ierror = MPI_SUCCESS
  end subroutine
  subroutine file_extent(datatype, extent, extra_state, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer(kind=adr) :: extent, extra_state
    integer :: ierror
    if (datatype /= MPI_INTEGER .or. extra_state /= 99) stop 18
    extent = 4
    ierror = MPI_SUCCESS
  end subroutine
  ! In the file numbers have the other sign.
  subroutine to_file(userbuf, datatype, count, filebuf, position, &
      extra_state, ierror)
    BUFFER(userbuf)
    HANDLE(MPI_Datatype) :: datatype
    integer :: count, ierror
    BUFFER(filebuf)
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=adr) :: extra_state
    integer, pointer :: u(:), f(:)
#ifdef F08
    call c_f_pointer(userbuf, u, [position + count])
    call c_f_pointer(filebuf, f, [count])
#else
    u => userbuf(1:position + count)
    f => filebuf(1:count)
#endif
    if (datatype /= MPI_INTEGER .or. extra_state /= 99) stop 19
    f = -u(position + 1:position + count)
    conversions = conversions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine from_file(userbuf, datatype, count, filebuf, position, &
      extra_state, ierror)
    BUFFER(userbuf)
    HANDLE(MPI_Datatype) :: datatype
    integer :: count, ierror
    BUFFER(filebuf)
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=adr) :: extra_state
    integer, pointer :: u(:), f(:)
#ifdef F08
    call c_f_pointer(userbuf, u, [position + count])
    call c_f_pointer(filebuf, f, [count])
#else
    u => userbuf(1:position + count)
    f => filebuf(1:count)
#endif
    if (datatype /= MPI_INTEGER .or. extra_state /= 99) stop 19
    u(position + 1:position + count) = -f
    conversions = conversions + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program three
  use procedures
  implicit none
  integer :: rank, ranks, peer, errors, ierror
  errors = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  peer = 1 - rank
#ifdef HEADER
  call check(.not. MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED')
#else
  call check(MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING, &
    'MPI_SUBARRAYS_SUPPORTED')
#endif
  call compiler
  call addresses
  call graphs
  call automatic_buffer
  call precisions
  call operation
  call attributes
  call error_handlers
  call generalized
  call representation
  call sections
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize(ierror)
  if (errors /= 0) error stop 1

contains

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print '(i0,2a)', rank, ': wrong: ', what
    errors = errors + 1
  end subroutine

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    if (.not. ok) call wrong(what)
  end subroutine

  ! What MPI was told of the compiler when the library was loaded.
  subroutine compiler
    logical :: yes, no, is_set
    character(len=8) :: value
    HANDLE(MPI_Info) :: info
    yes = .false.
    no = .true.
    is_set = .false.
    call MPI_Abi_get_fortran_booleans(4, yes, no, is_set, ierror)
    call check(ierror == MPI_SUCCESS .and. is_set .and. yes .and. .not. no, &
      'MPI_Abi_get_fortran_booleans')
    call MPI_Abi_get_fortran_info(info, ierror)
    call check(info /= MPI_INFO_NULL, 'MPI_Abi_get_fortran_info')
    call MPI_Info_get(info, 'mpi_double_precision_size', 8, value, is_set, &
      ierror)
    call check(is_set .and. value == '8', 'mpi_double_precision_size')
    ! Only the first one who tells counts.
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
    call MPI_Abi_set_fortran_info(info, ierror)
    call check(ierror == MPI_ERR_ABI, 'MPI_Abi_set_fortran_info')
    call MPI_Abi_set_fortran_booleans(4, no, yes, ierror)
    call check(ierror == MPI_ERR_ABI, 'MPI_Abi_set_fortran_booleans')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
    call MPI_Info_free(info, ierror)
  end subroutine

  ! MPI_BOTTOM, MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
  subroutine addresses
    integer, asynchronous, save :: x(2), y(2)
    integer(kind=adr) :: at(2)
    integer :: lengths(2), n
    HANDLE(MPI_Datatype) :: types(2), from, to
    HANDLE(MPI_Request) :: requests(2)
    STATUS_OF(status)
    x = [1, 2] + 10 * rank
    y = 0
    lengths = 1
    types = MPI_INTEGER
    call MPI_Get_address(x(2), at(1), ierror)
    call MPI_Get_address(x(1), at(2), ierror)
    call MPI_Type_create_struct(2, lengths, at, types, from, ierror)
    call MPI_Get_address(y(1), at(1), ierror)
    call MPI_Get_address(y(2), at(2), ierror)
    call MPI_Type_create_struct(2, lengths, at, types, to, ierror)
    call MPI_Type_commit(from, ierror)
    call MPI_Type_commit(to, ierror)
    call MPI_Irecv(MPI_BOTTOM, 1, to, peer, 1, MPI_COMM_WORLD, requests(1), &
      ierror)
    call MPI_Isend(MPI_BOTTOM, 1, from, peer, 1, MPI_COMM_WORLD, requests(2), &
      ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call MPI_F_sync_reg(y)
    call check(all(y == [2, 1] + 10 * peer), 'MPI_BOTTOM')
    call MPI_Sendrecv(x, 2, MPI_INTEGER, peer, 2, y, 2, MPI_INTEGER, peer, 2, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call check(all(y == [1, 2] + 10 * peer), 'MPI_STATUS_IGNORE')
    call MPI_Sendrecv(x, 1, MPI_INTEGER, peer, 3, y, 2, MPI_INTEGER, peer, 3, &
      MPI_COMM_WORLD, status, ierror)
    call MPI_Get_count(status, MPI_INTEGER, n, ierror)
    call check(n == 1, 'count of a status')
    call MPI_Type_free(from, ierror)
    call MPI_Type_free(to, ierror)
  end subroutine

  ! MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY; weights of arrays.
  subroutine graphs
    HANDLE(MPI_Comm) :: graph
    integer :: n, m, from(1), to(1), in_weight(1), out_weight(1)
    logical :: weighted
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [peer], &
      MPI_UNWEIGHTED, 1, [peer], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., &
      graph, ierror)
    call MPI_Dist_graph_neighbors_count(graph, n, m, weighted, ierror)
    call check(n == 1 .and. m == 1 .and. .not. weighted, 'MPI_UNWEIGHTED')
    call MPI_Dist_graph_neighbors(graph, 1, from, MPI_UNWEIGHTED, 1, to, &
      MPI_UNWEIGHTED, ierror)
    call check(from(1) == peer .and. to(1) == peer, 'neighbours')
    call MPI_Comm_free(graph, ierror)
    if (rank == 0) then
      call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, [0], &
        MPI_WEIGHTS_EMPTY, 1, [1], [7], MPI_INFO_NULL, .false., graph, ierror)
    else
      call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [0], [7], 0, &
        [0], MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., graph, ierror)
    end if
    call MPI_Dist_graph_neighbors_count(graph, n, m, weighted, ierror)
    call check(n == rank .and. m == 1 - rank .and. weighted, &
      'MPI_WEIGHTS_EMPTY')
    in_weight = 0
    out_weight = 0
    call MPI_Dist_graph_neighbors(graph, n, from, in_weight, m, to, &
      out_weight, ierror)
    call check(in_weight(1) == 7 * rank .and. &
      out_weight(1) == 7 * (1 - rank), 'weights')
    call MPI_Comm_free(graph, ierror)
  end subroutine

  subroutine automatic_buffer
    integer :: x, y, n
    HANDLE(MPI_Comm) :: comm
#ifdef F08
    type(c_ptr) :: address
#else
    integer(kind=adr) :: address
#endif
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_BUFFER_AUTOMATIC')
    x = 5 + rank
    call MPI_Bsend(x, 1, MPI_INTEGER, peer, 1, comm, ierror)
    call MPI_Recv(y, 1, MPI_INTEGER, peer, 1, comm, MPI_STATUS_IGNORE, ierror)
    call check(y == 5 + peer, 'buffered')
    call MPI_Comm_detach_buffer(comm, address, n, ierror)
    call check(ierror == MPI_SUCCESS, 'detach')
#ifdef F08
    call check(c_associated(address, c_loc(MPI_BUFFER_AUTOMATIC)), &
      'what is detached is MPI_BUFFER_AUTOMATIC')
#endif
    call MPI_Comm_free(comm, ierror)
  end subroutine

  subroutine precisions
    HANDLE(MPI_Datatype) :: t
    integer :: n, ints, adrs, types, combiner
    double precision :: x
    complex :: z
    integer(selected_int_kind(4)) :: k
    call MPI_Type_create_f90_real(15, MPI_UNDEFINED, t, ierror)
    call MPI_Type_size(t, n, ierror)
    call check(n == 8, 'MPI_Type_create_f90_real')
    call MPI_Type_get_envelope(t, ints, adrs, types, combiner, ierror)
    call check(combiner == MPI_COMBINER_F90_REAL .and. ints == 2, 'envelope')
    x = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, x, 1, t, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(x == 3, 'real of 15 digits')
    call MPI_Type_create_f90_complex(6, 30, t, ierror)
    z = cmplx(rank, 1)
    call MPI_Allreduce(MPI_IN_PLACE, z, 1, t, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(z == cmplx(1, 2), 'MPI_Type_create_f90_complex')
    call MPI_Type_create_f90_integer(4, t, ierror)
    k = int(rank + 1, kind(k))
    call MPI_Allreduce(MPI_IN_PLACE, k, 1, t, MPI_PROD, MPI_COMM_WORLD, ierror)
    call check(k == 2, 'MPI_Type_create_f90_integer')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, t, ierror)
    call check(t == MPI_DOUBLE_PRECISION .or. t == MPI_REAL8, 'match_size')
#ifndef HEADER
    call MPI_Sizeof(x, n, ierror)
    call check(n == 8, 'MPI_Sizeof')
    call MPI_Sizeof(k, n, ierror)
    call check(n == 2, 'MPI_Sizeof of a short integer')
#endif
  end subroutine

  subroutine operation
    HANDLE(MPI_Op) :: op
    integer :: x(3)
    call MPI_Op_create(add, .true., op, ierror)
    x = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, x, 3, MPI_INTEGER, op, MPI_COMM_WORLD, &
      ierror)
    call check(all(x == 3), 'operation')
    call MPI_Op_free(op, ierror)
  end subroutine

  subroutine attributes
    integer :: key
    integer, save, asynchronous :: memory(4)
    integer(kind=adr) :: val
    logical :: flag
    HANDLE(MPI_Comm) :: comm, comm2
    HANDLE(MPI_Datatype) :: t, t2
    HANDLE(MPI_Win) :: win
    call MPI_Comm_create_keyval(copy_comm, delete_comm, key, 1000_adr, ierror)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
    call MPI_Comm_set_attr(comm, key, 123456789012_adr, ierror)
    call MPI_Comm_dup(comm, comm2, ierror)
    call MPI_Comm_get_attr(comm2, key, val, flag, ierror)
    call check(flag .and. val == 123456790012_adr, 'communicator')
    call MPI_Comm_free(comm2, ierror)
    call MPI_Comm_free(comm, ierror)
    call MPI_Comm_free_keyval(key, ierror)
    call check(copies == 1 .and. deletions == 2, 'calls for communicators')
    call MPI_Type_create_keyval(copy_type, delete_type, key, 1000_adr, ierror)
    call MPI_Type_contiguous(2, MPI_INTEGER, t, ierror)
    call MPI_Type_set_attr(t, key, -17_adr, ierror)
    call MPI_Type_dup(t, t2, ierror)
    call MPI_Type_get_attr(t2, key, val, flag, ierror)
    call check(flag .and. val == 983, 'datatype')
    call MPI_Type_delete_attr(t2, key, ierror)
    call MPI_Type_get_attr(t2, key, val, flag, ierror)
    call check(.not. flag, 'datatype: deleted')
    call MPI_Type_free(t2, ierror)
    call MPI_Type_free(t, ierror)
    call MPI_Type_free_keyval(key, ierror)
    call check(copies == 2 .and. deletions == 4, 'calls for datatypes')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_win, key, &
      1000_adr, ierror)
    call MPI_Win_create(memory, 16_adr, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &
      win, ierror)
    call MPI_Win_set_attr(win, key, -5_adr, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, val, flag, ierror)
    call check(flag .and. val == 16, 'MPI_WIN_SIZE')
    call MPI_Win_free(win, ierror)
    call MPI_Win_free_keyval(key, ierror)
    call check(copies == 2 .and. deletions == 5, 'calls for windows')
  end subroutine

  subroutine error_handlers
    integer, save, asynchronous :: memory(4)
    HANDLE(MPI_Errhandler) :: handler, found
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Win) :: win
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Session) :: session
    call MPI_Comm_create_errhandler(on_comm, handler, ierror)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
    call MPI_Comm_set_errhandler(comm, handler, ierror)
    call MPI_Send(memory, 1, MPI_INTEGER, 5, 0, comm, ierror)
    call check(ierror /= MPI_SUCCESS .and. handled == 1, 'communicator')
    call MPI_Comm_get_errhandler(comm, found, ierror)
    call check(found == handler, 'handler is found')
    call MPI_Comm_free(comm, ierror)
    call MPI_Errhandler_free(handler, ierror)
    call MPI_Win_create_errhandler(on_win, handler, ierror)
    call MPI_Win_create(memory, 16_adr, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &
      win, ierror)
    call MPI_Win_set_errhandler(win, handler, ierror)
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER, ierror)
    call MPI_Win_free(win, ierror)
    call MPI_Errhandler_free(handler, ierror)
    call check(handled == 11, 'handler of a window')
    call MPI_File_create_errhandler(on_file, handler, ierror)
    call MPI_File_open(MPI_COMM_WORLD, trim(file_name()), &
      MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
      MPI_INFO_NULL, file, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_File_open')
    call MPI_File_set_errhandler(file, handler, ierror)
    call MPI_File_call_errhandler(file, MPI_ERR_IO, ierror)
    call MPI_File_close(file, ierror)
    call MPI_Errhandler_free(handler, ierror)
    call check(handled == 111, 'handler of a file')
    call MPI_Session_create_errhandler(on_session, handler, ierror)
    call MPI_Session_init(MPI_INFO_NULL, handler, session, ierror)
    call MPI_Session_call_errhandler(session, MPI_ERR_OTHER, ierror)
    call MPI_Session_finalize(session, ierror)
    call MPI_Errhandler_free(handler, ierror)
    call check(handled == 1111, 'handler of a session')
  end subroutine

  function file_name()
    character(len=200) :: file_name
    call get_environment_variable('THREE_FILE', file_name)
  end function

  subroutine generalized
    integer(kind=adr), save, asynchronous :: state
    integer :: n
    HANDLE(MPI_Request) :: request
    STATUS_OF(status)
    state = 7
    call MPI_Grequest_start(query, release, cancel, state, request, ierror)
    call MPI_Grequest_complete(request, ierror)
    call MPI_Cancel(request, ierror)
    call MPI_Wait(request, status, ierror)
    call MPI_Get_elements(status, MPI_INTEGER, n, ierror)
    call check(n == 7 .and. queries == 1 .and. frees == 1, 'generalized')
#ifdef F08
    call check(status%MPI_SOURCE == 12, 'status of a generalized request')
#else
    call check(status(MPI_SOURCE) == 12, 'status of a generalized request')
#endif
  end subroutine

  subroutine representation
    HANDLE(MPI_File) :: file
#ifndef HEADER
    HANDLE(MPI_Request) :: request
    integer, save, asynchronous :: z(2, 4)
#endif
    integer :: x(4), y(4)
    integer(kind=MPI_OFFSET_KIND) :: at
    call MPI_Register_datarep('other sign ', from_file, to_file, &
      file_extent, 99_adr, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_Register_datarep')
    call MPI_File_open(MPI_COMM_WORLD, trim(file_name()), &
      MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
      MPI_INFO_NULL, file, ierror)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, &
      'other sign', MPI_INFO_NULL, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_File_set_view')
    x = [1, 2, 3, 4] + 10 * rank
    at = 4 * rank
    call MPI_File_write_at_all(file, at, x, 4, MPI_INTEGER, &
      MPI_STATUS_IGNORE, ierror)
    y = 0
    call MPI_File_read_at_all(file, at, y, 4, MPI_INTEGER, &
      MPI_STATUS_IGNORE, ierror)
    call check(all(x == y) .and. conversions >= 2, 'read back')
#ifndef HEADER
    ! Sections, too, with the datatype that the call has.
    z(1, :) = x
    z(2, :) = 0
    call MPI_File_write_at_all(file, at, z(1, :), 4, MPI_INTEGER, &
      MPI_STATUS_IGNORE, ierror)
    call MPI_File_iread_at(file, at, z(2, :), 4, MPI_INTEGER, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(all(z(1, :) == x .and. z(2, :) == x), 'sections read back')
#endif
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, &
      'native', MPI_INFO_NULL, ierror)
    call MPI_File_read_at_all(file, at, y, 4, MPI_INTEGER, &
      MPI_STATUS_IGNORE, ierror)
    call check(all(x == -y), 'as it is in the file')
    call MPI_File_close(file, ierror)
  end subroutine

  ! Array sections in one-sided calls and in files.
  subroutine sections
#ifndef HEADER
    HANDLE(MPI_Win) :: win
    HANDLE(MPI_Request) :: request
    HANDLE(MPI_File) :: file
    integer, save, asynchronous :: memory(8), a(4, 4), b(4, 4), r(16)
    integer(kind=MPI_OFFSET_KIND) :: at
    integer :: i
    memory = 0
    a = reshape([(i, i = 1, 16)], [4, 4]) + 100 * rank
    b = 0
    call MPI_Win_create(memory, 32_adr, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &
      win, ierror)
    call MPI_Win_fence(0, win, ierror)
    call MPI_Put(a(2, :), 4, MPI_INTEGER, peer, 0_adr, 4, MPI_INTEGER, win, &
      ierror)
    call MPI_Accumulate(a(4:1:-1, 3), 4, MPI_INTEGER, peer, 4_adr, 4, &
      MPI_INTEGER, MPI_SUM, win, ierror)
    call MPI_Win_fence(0, win, ierror)
    call check(all(memory == [2, 6, 10, 14, 12, 11, 10, 9] + 100 * peer), &
      'MPI_Put and MPI_Accumulate')
    call MPI_Get(b(3, :), 4, MPI_INTEGER, peer, 0_adr, 4, MPI_INTEGER, win, &
      ierror)
    call MPI_Win_fence(0, win, ierror)
    call check(all(b(3, :) == [2, 6, 10, 14] + 100 * rank) .and. &
      count(b /= 0) == 4, 'MPI_Get')
    call MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win, ierror)
    call MPI_Rget(b(1, 4:1:-1), 4, MPI_INTEGER, peer, 4_adr, 4, MPI_INTEGER, &
      win, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call MPI_Get_accumulate(a(1, ::2), 2, MPI_INTEGER, b(4, ::2), 2, &
      MPI_INTEGER, peer, 0_adr, 2, MPI_INTEGER, MPI_NO_OP, win, ierror)
    call MPI_Win_unlock(peer, win, ierror)
    call check(all(b(1, 4:1:-1) == [12, 11, 10, 9] + 100 * rank), 'MPI_Rget')
    call check(all(b(4, ::2) == [2, 6] + 100 * rank) .and. &
      count(b /= 0) == 10, 'MPI_Get_accumulate')
    call MPI_Win_free(win, ierror)
    call MPI_File_open(MPI_COMM_WORLD, trim(file_name()), &
      MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
      MPI_INFO_NULL, file, ierror)
    at = 16 * rank
    call MPI_File_iwrite_at(file, at, a(1, :), 4, MPI_INTEGER, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    b = 0
    r = 0
    call MPI_File_read_at_all_begin(file, at, b(2, :), 4, MPI_INTEGER, ierror)
    call MPI_File_read_at_all_end(file, b(2, :), MPI_STATUS_IGNORE, ierror)
    call check(all(b(2, :) == a(1, :)) .and. count(b /= 0) == 4, 'file')
    call MPI_File_close(file, ierror)
#endif
  end subroutine
end program

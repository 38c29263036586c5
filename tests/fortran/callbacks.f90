! SPDX-License-Identifier: BSD-3-Clause
! Procedures that MPI calls, in mpi_f08: operations, attributes, error
! handlers, generalized requests; the predefined ones; many of one kind.
module procedures
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  integer :: copies = 0, deletions = 0, queries = 0, frees = 0, cancels = 0
  integer :: handled = 0
  integer :: seen_code = MPI_SUCCESS
contains
  subroutine take_larger(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) stop 3
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = max(a, b)
  end subroutine
  subroutine add_large(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype == MPI_DATATYPE_NULL) stop 4
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = a + b
  end subroutine
  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, &
      attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val_in, attribute_val_out
    logical :: flag
    if (oldcomm == MPI_COMM_NULL .or. comm_keyval == MPI_KEYVAL_INVALID) stop 5
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
    copies = copies + 1
  end subroutine
  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (comm == MPI_COMM_NULL .or. comm_keyval == MPI_KEYVAL_INVALID) stop 6
    if (extra_state /= 1000 .or. attribute_val == 0) stop 7
    deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_SELF) stop 8
    handled = handled + 1
    seen_code = error_code
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 12
    status%MPI_TAG = 34
    queries = queries + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    if (extra_state /= 7) stop 9
    extra_state = 8
    frees = frees + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (complete .or. extra_state /= 7) stop 10
    cancels = cancels + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program callbacks
  use procedures
  implicit none
  integer :: rank, ranks, errors, a(4), b(4), keyval, i, n
  integer(kind=MPI_ADDRESS_KIND) :: value
  integer(kind=MPI_ADDRESS_KIND), asynchronous :: state
  type(MPI_Op) :: op
  type(MPI_Comm) :: comm, twice
  type(MPI_Errhandler) :: handler
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  logical :: flag
  errors = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)

  ! More operations than there are trampolines, but of one procedure.
  do i = 1, 300
    call MPI_Op_create(take_larger, .true., op)
    if (i < 300) call MPI_Op_free(op)
  end do
  call MPI_Op_commutative(op, flag)
  call check(flag, 'commutative')
  a = rank
  call MPI_Allreduce(a, b, 4, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(all(b == ranks - 1), 'operation')
  call MPI_Op_free(op)
  call check(op == MPI_OP_NULL, 'operation freed')
  call MPI_Op_create_c(add_large, .false., op)
  call MPI_Allreduce(a, b, 4_MPI_COUNT_KIND, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(all(b == ranks * (ranks - 1) / 2), 'large operation')
  call MPI_Op_free(op)

  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_create_keyval(copy, delete, keyval, 1000_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(comm, keyval, 123456789012_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(comm, twice)
  call MPI_Comm_get_attr(twice, keyval, value, flag)
  call check(flag .and. value == 123456790012_MPI_ADDRESS_KIND, 'copied')
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(flag .and. value == 123456789012_MPI_ADDRESS_KIND, 'kept')
  call MPI_Comm_set_attr(comm, keyval, 5_MPI_ADDRESS_KIND)
  call check(deletions == 1, 'overwritten')
  call MPI_Comm_free(twice)
  call MPI_Comm_delete_attr(comm, keyval)
  call check(copies == 1 .and. deletions == 3, 'deleted')
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(.not. flag, 'gone')
  call MPI_Comm_free_keyval(keyval)
  call check(keyval == MPI_KEYVAL_INVALID, 'key value freed')

  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &
    keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(comm, keyval, -17_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(comm, twice)
  call MPI_Comm_free(comm)
  call MPI_Comm_get_attr(twice, keyval, value, flag)
  call check(flag .and. value == -17, 'MPI_COMM_DUP_FN')
  call MPI_Comm_free_keyval(keyval)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &
    keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(twice, keyval, 1_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(twice, comm)
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(.not. flag, 'MPI_COMM_NULL_COPY_FN')
  call MPI_Comm_free(twice)
  call MPI_Comm_free(comm)
  call MPI_Comm_free_keyval(keyval)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  call check(flag .and. value >= 32767, 'MPI_TAG_UB')

  call MPI_Comm_create_errhandler(on_error, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler)
  call MPI_Send(a, 1, MPI_INTEGER, 1, 0, MPI_COMM_SELF, n)
  call check(handled == 1 .and. n /= MPI_SUCCESS .and. seen_code == n, &
    'error handler')
  call MPI_Error_class(n, i)
  call check(i == MPI_ERR_RANK, 'error class')
  call MPI_Errhandler_free(handler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)

  state = 7
  call MPI_Grequest_start(query, release, cancel, state, request)
  call MPI_Cancel(request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call MPI_Get_elements(status, MPI_INTEGER, n)
  call check(n == 7 .and. status%MPI_SOURCE == 12 .and. &
    status%MPI_TAG == 34, 'status of a generalized request')
  call check(state == 8, 'extra_state is the variable')
  call check(queries == 1 .and. frees == 1 .and. cancels == 1, &
    'calls of a generalized request')

  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (errors /= 0) stop 1

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    if (ok) return
    print '(2a)', 'wrong: ', what
    errors = errors + 1
  end subroutine
end program

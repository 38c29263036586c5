! SPDX-License-Identifier: BSD-3-Clause
! The module mpi: integers for handles, arrays for statuses, sections, and
! buffers of several types in one file.
program module_mpi
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none
  integer :: rank, ranks, peer, ierror, errors, request, n
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
  integer :: requests(2), i, whole(6), part(12)
  real :: x
  double precision :: y(3)
  complex :: z
  logical :: yes, no
  character(len=5) :: word
  type(MPI_Status) :: modern
  type(c_ptr) :: memory
  integer(kind=MPI_ADDRESS_KIND) :: address
  integer, pointer :: room(:)

  errors = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  if (ierror /= MPI_SUCCESS) errors = errors + 1
  peer = ieor(rank, 1)
  if (.not. MPI_SUBARRAYS_SUPPORTED) errors = errors + 1

  x = rank
  call MPI_Sendrecv_replace(x, 1, MPI_REAL, peer, 1, peer, 1, &
    MPI_COMM_WORLD, status, ierror)
  if (x /= peer .or. status(MPI_SOURCE) /= peer .or. status(MPI_TAG) /= 1) &
    errors = errors + 1
  y = rank
  call MPI_Bcast(y, 3, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
  z = cmplx(rank, 1)
  call MPI_Bcast(z, 1, MPI_COMPLEX, 1, MPI_COMM_WORLD, ierror)
  word = merge('hello', '     ', rank == 0)
  call MPI_Bcast(word, 5, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  if (any(y /= 0) .or. z /= cmplx(1, 1) .or. word /= 'hello') &
    errors = errors + 1
  yes = rank == 0
  call MPI_Allreduce(yes, no, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
  if (no) errors = errors + 1

  whole = [(i + 10 * rank, i = 1, 6)]
  part = 0
  call MPI_Irecv(part(2::2), 6, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, &
    requests(1), ierror)
  call MPI_Isend(whole(6:1:-1), 6, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, &
    requests(2), ierror)
  call MPI_Waitall(2, requests, statuses, ierror)
  if (any(part(12:2:-2) /= whole + 10 * (peer - rank)) .or. &
    any(part(1::2) /= 0)) errors = errors + 1
  if (any(requests /= MPI_REQUEST_NULL)) errors = errors + 1
  call MPI_Get_count(statuses(:, 1), MPI_INTEGER, n, ierror)
  if (n /= 6) errors = errors + 1

  call MPI_Status_f2f08(statuses(:, 1), modern, ierror)
  if (modern%MPI_SOURCE /= peer .or. modern%MPI_TAG /= 2) errors = errors + 1
  call MPI_Sendrecv(whole, 6, MPI_INTEGER, peer, 4, part, 6, MPI_INTEGER, &
    peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)

  call MPI_Alloc_mem(24_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, ierror)
  call c_f_pointer(memory, room, [6])
  room = whole
  call MPI_Free_mem(room, ierror)
  call MPI_Alloc_mem(24_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierror)
  if (address == 0) errors = errors + 1
  call free_it(address)

  call MPI_Sizeof(x, n, ierror)
  if (n /= 4) errors = errors + 1
  call MPI_Sizeof(y, n, ierror)
  if (n /= 8) errors = errors + 1
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Cancel_nothing
  call MPI_Reduce(MPI_IN_PLACE, errors, merge(1, 0, .false.), MPI_INTEGER, &
    MPI_SUM, MPI_PROC_NULL + 3, MPI_COMM_SELF, ierror)
  n = errors
  call MPI_Allreduce(n, errors, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, &
    ierror)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize(ierror)
  if (errors /= 0) stop 1

contains

  subroutine free_it(at)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: at
    integer, pointer :: found(:)
    call c_f_pointer(transfer(at, c_null_ptr), found, [6])
    call MPI_Free_mem(found, ierror)
  end subroutine

  ! A receive that is cancelled, and a request that stays as it is.
  subroutine MPI_Cancel_nothing
    integer, asynchronous :: never
    logical :: flag
    call MPI_Irecv(never, 1, MPI_INTEGER, peer, 99, MPI_COMM_WORLD, request, &
      ierror)
    call MPI_Test(request, flag, status, ierror)
    if (flag) errors = errors + 1
    call MPI_Cancel(request, ierror)
    call MPI_Wait(request, status, ierror)
    call MPI_Test_cancelled(status, flag, ierror)
    if (.not. flag) errors = errors + 1
  end subroutine
end program

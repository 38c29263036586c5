! SPDX-License-Identifier: BSD-3-Clause
! Sections with gaps where memory must be contiguous, and counts that reach
! beyond a section: errors that name call and argument, at the process that
! uses the buffer. What just fits is let through.
program beyond
  use mpi_f08
  implicit none
  integer :: rank, size
  integer, asynchronous :: a(2, 8), b(2, 8)
  integer :: counts(4), places(4)
  type(MPI_Datatype) :: types(4)
  type(MPI_Datatype) :: pair
  type(MPI_Request) :: request
  type(MPI_Comm) :: ring
  type(MPI_Win) :: win
  integer :: code, position
  logical, parameter :: yes(1) = [.true.]
  integer(MPI_ADDRESS_KIND), parameter :: bytes = 32, unit = 1

  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (size /= 4) error stop 'four processes'
  a = rank
  b = 0
  call must_be_contiguous
  call one_count
  call reductions
  call with_roots
  call for_all
  call neighbors
  call packing
  call between_groups
  call what_nobody_looks_at
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', 'No Errors'
  call MPI_Finalize()

contains

  subroutine fails(code, class, words)
    integer, intent(in) :: code, class
    character(len=*), intent(in) :: words
    character(len=MPI_MAX_ERROR_STRING) :: text
    integer :: found, length
    if (code == MPI_SUCCESS) error stop 'no error: ' // words
    call MPI_Error_class(code, found)
    call MPI_Error_string(code, text, length)
    if (found == class .and. index(text, words) > 0) return
    print *, rank, ': not ', words, ', class ', class, ': ', text(:length), found
    error stop 1
  end subroutine

  subroutine too_long(code, call, argument)
    integer, intent(in) :: code
    character(len=*), intent(in) :: call, argument
    call fails(code, MPI_ERR_COUNT, call // ': ' // argument // &
      ' is an array section with gaps, and count and datatype reach beyond it')
  end subroutine

  subroutine fits(code)
    integer, intent(in) :: code
    if (code /= MPI_SUCCESS) error stop 'it fits'
  end subroutine

  subroutine has_gaps(code, call, argument)
    integer, intent(in) :: code
    character(len=*), intent(in) :: call, argument
    call fails(code, MPI_ERR_BUFFER, call // ': ' // argument // &
      ' is an array section with gaps; here it must be contiguous')
  end subroutine

  subroutine must_be_contiguous
    type(MPI_Session) :: session
    call MPI_Win_create(a(1, :), bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, win, code)
    call has_gaps(code, 'MPI_Win_create', 'base')
    call MPI_Win_create(a(1, :), bytes, unit, MPI_INFO_NULL, MPI_COMM_SELF, win, code)
    call has_gaps(code, 'MPI_Win_create_c', 'base')
    call MPI_Win_create(a(:, 3:4), bytes / 2, 4, MPI_INFO_NULL, MPI_COMM_SELF, win, code)
    call fits(code)
    call MPI_Win_free(win)
    call MPI_Win_create(a(1, :), 0 * bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, win, code)
    call fits(code)
    call MPI_Win_free(win)
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, win)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_attach(win, a(1, :), bytes, code)
    call has_gaps(code, 'MPI_Win_attach', 'base')
    call MPI_Win_attach(win, a, bytes, code)
    call fits(code)
    call MPI_Win_detach(win, a)
    call MPI_Win_free(win)
    call MPI_Buffer_attach(a(1, :), 32, code)
    call has_gaps(code, 'MPI_Buffer_attach', 'buffer')
    call MPI_Buffer_attach(a(1, :), 32_MPI_COUNT_KIND, code)
    call has_gaps(code, 'MPI_Buffer_attach_c', 'buffer')
    call MPI_Comm_attach_buffer(MPI_COMM_WORLD, a(1, :), 32, code)
    call has_gaps(code, 'MPI_Comm_attach_buffer', 'buffer')
    call MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 0, code)
    call fits(code)
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
    call MPI_Session_attach_buffer(session, a(1, :), 32, code)
    call has_gaps(code, 'MPI_Session_attach_buffer', 'buffer')
    call MPI_Session_finalize(session)
    call MPI_Precv_init(b(1, :), 1, 8_MPI_COUNT_KIND, MPI_INTEGER, 0, 0, &
      MPI_COMM_WORLD, MPI_INFO_NULL, request, code)
    call has_gaps(code, 'MPI_Precv_init_c', 'buf')
    call MPI_Precv_init(b(1, :), 1, 0_MPI_COUNT_KIND, MPI_INTEGER, 0, 0, &
      MPI_COMM_WORLD, MPI_INFO_NULL, request, code)
    call fits(code)
    call MPI_Request_free(request)
  end subroutine

  subroutine one_count
    call MPI_Send(a(1, :), 9, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Send', 'buf')
    call MPI_Irecv(b(1, :), 9_MPI_COUNT_KIND, MPI_INTEGER, MPI_PROC_NULL, 0, &
      MPI_COMM_WORLD, request, code)
    call too_long(code, 'MPI_Irecv_c', 'buf')
    call MPI_Send(a(1, :), huge(0_MPI_COUNT_KIND), MPI_INTEGER, MPI_PROC_NULL, &
      0, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Send_c', 'buf')
    call MPI_Type_vector(2, 1, 4, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    call MPI_Send(a(1, :), 1, pair, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
    call fits(code)
    call MPI_Send(a(1, :), 2, pair, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Send', 'buf')
    call MPI_Send(a(1, ::4), 1, pair, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Send', 'buf')
    call MPI_Type_free(pair)
    ! The array goes on: what follows one without gaps is the program's matter.
    call MPI_Send(a(:, 1:2), 16, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, code)
    call fits(code)
  end subroutine

  subroutine reductions
    counts = [2, 2, 2, 2]
    call MPI_Allreduce(a(1, :), b, 9, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Allreduce', 'sendbuf')
    call MPI_Allreduce(a, b(1, :), 9, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Allreduce', 'recvbuf')
    call MPI_Iallreduce(MPI_IN_PLACE, b(1, :), 9, MPI_INTEGER, MPI_SUM, &
      MPI_COMM_SELF, request, code)
    call too_long(code, 'MPI_Iallreduce', 'recvbuf')
    call MPI_Scan(a(1, :), b, 9, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Scan', 'sendbuf')
    call MPI_Reduce_local(a, b(1, :), 9, MPI_INTEGER, MPI_SUM, code)
    call too_long(code, 'MPI_Reduce_local', 'inoutbuf')
    call MPI_Reduce_scatter_block(a(1, ::2), b, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Reduce_scatter_block', 'sendbuf')
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, b(1, ::2), 2, MPI_INTEGER, &
      MPI_SUM, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Reduce_scatter_block', 'recvbuf')
    call MPI_Reduce_scatter_block(a(1, :), b(1, ::4), 2, MPI_INTEGER, MPI_SUM, &
      MPI_COMM_WORLD, code)
    call fits(code)
    call MPI_Reduce_scatter(a(1, 1:7), b, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Reduce_scatter', 'sendbuf')
    call MPI_Reduce_scatter(a, b(1, 1:8:8), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, code)
    call fits(code) ! one element has no gaps
    call MPI_Reduce_scatter(a(1, :), b(1, 1:8:4), counts, MPI_INTEGER, MPI_SUM, &
      MPI_COMM_WORLD, code)
    call fits(code)
    ! At the root only, elsewhere nothing is received.
    if (rank == 0) then
      call MPI_Reduce(a, b(1, :), 8, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, code)
    else
      call MPI_Reduce(a, b(1, ::4), 8, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, code)
    end if
    call fits(code)
  end subroutine

  ! Each process is the root of a communicator of its own, or calls for all.
  subroutine with_roots
    integer :: wanted(4)
    wanted = [1, 2, 3, 4]
    call MPI_Gather(a(1, ::4), 3, MPI_INTEGER, b, 3, MPI_INTEGER, 0, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Gather', 'sendbuf')
    call MPI_Gather(a, 3, MPI_INTEGER, b(1, ::4), 3, MPI_INTEGER, 0, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Gather', 'recvbuf')
    call MPI_Scatter(a(1, ::4), 3, MPI_INTEGER, b, 3, MPI_INTEGER, 0, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Scatter', 'sendbuf')
    call MPI_Scatter(a, 3, MPI_INTEGER, b(1, ::4), 3, MPI_INTEGER, 0, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Scatter', 'recvbuf')
    call MPI_Gatherv(a, 2, MPI_INTEGER, b(1, :), [2], [7], MPI_INTEGER, 0, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Gatherv', 'recvbuf')
    call MPI_Scatterv(a(1, :), [2], [-1], MPI_INTEGER, b, 2, MPI_INTEGER, 0, &
      MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Scatterv', 'sendbuf')
    ! Counts of the receive side mean nothing but at the root.
    call MPI_Gather(a(1, ::4), 2, MPI_INTEGER, b(1, :), merge(2, 99, rank == 1), &
      MPI_INTEGER, 1, MPI_COMM_WORLD, code)
    call fits(code)
    if (rank == 1 .and. any(b(1, :) /= [0, 0, 1, 1, 2, 2, 3, 3])) error stop 'gather'
    call MPI_Scatterv(a(1, :), merge(counts, wanted * 99, rank == 1), &
      [0, 2, 4, 6], MPI_INTEGER, b(1, ::4), 2, MPI_INTEGER, 1, MPI_COMM_WORLD, code)
    call fits(code)
    if (any(b(1, ::4) /= 1)) error stop 'scatterv'
  end subroutine

  subroutine for_all
    places = [0, 2, 4, 6]
    types = MPI_INTEGER
    call MPI_Allgather(a, 2, MPI_INTEGER, b(1, :7), 2, MPI_INTEGER, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Allgather', 'recvbuf')
    call MPI_Alltoall(a(1, :7), 2, MPI_INTEGER, b, 2, MPI_INTEGER, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Alltoall', 'sendbuf')
    call MPI_Allgatherv(a, 2, MPI_INTEGER, b(1, :7), counts, places, MPI_INTEGER, &
      MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Allgatherv', 'recvbuf')
    call MPI_Alltoallv(a(1, :7), counts, places, MPI_INTEGER, b, counts, places, &
      MPI_INTEGER, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Alltoallv', 'sendbuf')
    call MPI_Ialltoallw(a, counts, places * 4, types, b(1, :7), counts, &
      places * 4, types, MPI_COMM_WORLD, request, code)
    call too_long(code, 'MPI_Ialltoallw', 'recvbuf')
    call MPI_Alltoallw(a(1, :), counts, places * 4, types, b(1, :), counts, &
      places * 4, types, MPI_COMM_WORLD, code)
    call fits(code)
    if (any(b(1, :) /= [0, 0, 1, 1, 2, 2, 3, 3])) error stop 'alltoallw'
  end subroutine

  subroutine neighbors
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [4], yes, .false., ring)
    call MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN)
    call MPI_Neighbor_allgather(a, 4, MPI_INTEGER, b(1, :7), 4, MPI_INTEGER, ring, code)
    call too_long(code, 'MPI_Neighbor_allgather', 'recvbuf')
    call MPI_Neighbor_alltoallw(a(1, :), counts(:2), int([0, 28], MPI_ADDRESS_KIND), &
      types(:2), b, counts(:2), int([0, 8], MPI_ADDRESS_KIND), types(:2), ring, code)
    call too_long(code, 'MPI_Neighbor_alltoallw', 'sendbuf')
    call MPI_Neighbor_alltoall(a(1, :), 4, MPI_INTEGER, b(1, :), 4, MPI_INTEGER, ring, code)
    call fits(code)
    call MPI_Comm_free(ring)
  end subroutine

  subroutine packing
    position = 0
    call MPI_Pack(a, 1, MPI_INTEGER, b(1, :), 36, position, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Pack', 'outbuf')
    call MPI_Unpack(b(1, :), 36, position, a, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
    call too_long(code, 'MPI_Unpack', 'inbuf')
    call MPI_Pack(a, 1, MPI_INTEGER, b(1, :), 32, position, MPI_COMM_WORLD, code)
    call fits(code)
  end subroutine

  ! Rank 0 on one side, three ranks on the other: what counts is the size of the
  ! remote group, and of the own one for what a group divides.
  subroutine between_groups
    type(MPI_Comm) :: side, inter
    integer :: root, one(3)
    logical :: is_one
    is_one = rank == 0
    one = 99
    one(1) = 6
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, 1, is_one), rank, side)
    call MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, merge(1, 0, is_one), 1, inter)
    call MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN)
    a = rank + 1
    b = 0
    if (is_one) then
      call MPI_Reduce_scatter(a(1, :6), b(1, :6), one(:1), MPI_INTEGER, MPI_SUM, inter, code)
      call fits(code)
      if (any(b(1, :6) /= 9)) error stop 'reduce_scatter'
      call MPI_Reduce_scatter_block(a(1, :6), b(1, :6), 6, MPI_INTEGER, MPI_SUM, inter, code)
      call fits(code)
      call MPI_Gather(a, 99, MPI_INTEGER, b(1, :6), 2, MPI_INTEGER, MPI_ROOT, inter, code)
      call fits(code)
      if (any(b(1, :6) /= [2, 2, 3, 3, 4, 4])) error stop 'gather'
      call MPI_Gather(a, 2, MPI_INTEGER, b(1, :5), 2, MPI_INTEGER, MPI_ROOT, inter, code)
      call too_long(code, 'MPI_Gather', 'recvbuf')
      call MPI_Alltoall(a(1, :6), 2, MPI_INTEGER, b(1, :6), 2, MPI_INTEGER, inter, code)
      call fits(code)
      call MPI_Bcast(b(1, :), 3, MPI_INTEGER, 0, inter, code)
      call fits(code)
      call MPI_Scatterv(a(1, ::4), one, one, MPI_INTEGER, b(1, :), 3, MPI_INTEGER, &
        0, inter, code)
    else
      call MPI_Reduce_scatter(a(1, :5), b, counts(:3), MPI_INTEGER, MPI_SUM, inter, code)
      call too_long(code, 'MPI_Reduce_scatter', 'sendbuf')
      call MPI_Reduce_scatter_block(a(1, :5), b, 2, MPI_INTEGER, MPI_SUM, inter, code)
      call too_long(code, 'MPI_Reduce_scatter_block', 'sendbuf')
      call MPI_Reduce_scatter(a(1, :6), b(1, ::4), counts(:3), MPI_INTEGER, MPI_SUM, inter, code)
      call fits(code)
      call MPI_Reduce_scatter_block(a(1, :6), b(1, ::4), 2, MPI_INTEGER, MPI_SUM, inter, code)
      call fits(code)
      if (any(b(1, ::4) /= 1)) error stop 'reduce_scatter_block'
      call MPI_Gather(a(1, ::4), 2, MPI_INTEGER, b(1, ::4), 99, MPI_INTEGER, 0, inter, code)
      call fits(code)
      call MPI_Alltoall(a(1, ::4), 2, MPI_INTEGER, b(1, ::4), 2, MPI_INTEGER, inter, code)
      call fits(code)
      root = merge(MPI_ROOT, MPI_PROC_NULL, rank == 1)
      call MPI_Bcast(a(1, :), merge(3, 99, rank == 1), MPI_INTEGER, root, inter, code)
      call fits(code)
      call MPI_Scatterv(a(1, :), merge([3], [99], rank == 1), [5], MPI_INTEGER, &
        b(1, ::4), 99, MPI_INTEGER, root, inter, code)
    end if
    call fits(code)
    call MPI_Comm_free(inter)
    call MPI_Comm_free(side)
  end subroutine

  ! Buffers that a call does not look at, or not at this process.
  subroutine what_nobody_looks_at
    call MPI_Exscan(a, b(1, ::4), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, code)
    call fits(code)
    call MPI_Iexscan(a, b(1, ::4), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, request, code)
    call fits(code)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Exscan_init(a, b(1, ::4), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, &
      MPI_INFO_NULL, request, code)
    call fits(code)
    call MPI_Request_free(request)
    call MPI_Exscan(MPI_IN_PLACE, b(1, :), 9, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, code)
    call too_long(code, 'MPI_Exscan', 'recvbuf')
    if (rank == 0) then
      call MPI_Exscan(a, b(1, ::4), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    else
      call MPI_Exscan(a, b(1, ::4), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
      call too_long(code, 'MPI_Exscan', 'recvbuf')
      call MPI_Exscan(a, b(1, :), 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    end if
    call fits(code)
    call MPI_Win_create(a, bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, win)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_fence(0, win)
    call MPI_Get_accumulate(b(1, :), 99, MPI_INTEGER, b(2, :), 8, MPI_INTEGER, 0, &
      0_MPI_ADDRESS_KIND, 8, MPI_INTEGER, MPI_NO_OP, win, code)
    call fits(code)
    call MPI_Get_accumulate(b(1, :), 9, MPI_INTEGER, b(2, :), 8, MPI_INTEGER, 0, &
      0_MPI_ADDRESS_KIND, 8, MPI_INTEGER, MPI_SUM, win, code)
    call too_long(code, 'MPI_Get_accumulate', 'origin_addr')
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
  end subroutine
end program

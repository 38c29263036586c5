! SPDX-License-Identifier: BSD-3-Clause
! Array sections with gaps as buffers in mpi_f08: blocking, non-blocking,
! persistent, in collectives and reductions, with types that do not fit.
program sections
  use mpi_f08
  implicit none
  integer :: rank, ranks, peer, errors
  errors = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  peer = ieor(rank, 1)
  if (.not. MPI_SUBARRAYS_SUPPORTED) call wrong('MPI_SUBARRAYS_SUPPORTED')
  if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call wrong('ASYNC_PROTECTS')
  call exchange(1)
  call exchange(3)
  call part_of_section
  call nonblocking
  call freed_before_completion
  call persistent
  call odd_types
  call collectives
  call nonblocking_collectives
  call packing
  call negative_stride
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
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

  ! A plane of a cube goes to the peer, which takes it into another plane.
  subroutine exchange(times)
    integer, intent(in) :: times
    integer :: a(5, 6, 7), b(9, 8, 7), i, j, k, n
    type(MPI_Status) :: status
    do k = 1, 7
      do j = 1, 6
        do i = 1, 5
          a(i, j, k) = 1000 * rank + 100 * i + 10 * j + k
        end do
      end do
    end do
    do n = 1, times
      b = -1
      call MPI_Sendrecv(a(2, :, 1:7:2), 24, MPI_INTEGER, peer, 3, &
        b(1:8:3, 1:8, 2), 24, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, status)
      call check(all(reshape(b(1:8:3, 1:8, 2), [24]) == &
        reshape(a(2, :, 1:7:2) + 1000 * (peer - rank), [24])), 'sendrecv')
      call check(count(b /= -1) == 24, 'only the section is written')
      call MPI_Get_count(status, MPI_INTEGER, i)
      call check(i == 24, 'count')
    end do
  end subroutine

  ! Fewer elements than the section has, ending inside a row.
  subroutine part_of_section
    real :: a(10, 10), b(10, 10)
    integer :: i
    a = reshape([(real(i + rank), i = 1, 100)], [10, 10])
    b = 0
    call MPI_Sendrecv(a(1:9:2, 1:9:2), 13, MPI_REAL, peer, 4, &
      b(2:10:2, 2:10:2), 13, MPI_REAL, peer, 4, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(count(b /= 0) == 13, 'part: count')
    call check(b(2, 2) == 1 + peer .and. b(10, 4) == 29 + peer .and. &
      b(6, 6) == 45 + peer .and. b(8, 6) == 0, 'part: values')
  end subroutine

  subroutine nonblocking
    double precision, asynchronous :: a(100), b(200)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
    integer :: i
    a = [(dble(i * (rank + 1)), i = 1, 100)]
    b = 0
    call MPI_Irecv(b(1::4), 50, MPI_DOUBLE_PRECISION, peer, 5, &
      MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(2::2), 50, MPI_DOUBLE_PRECISION, peer, 5, &
      MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call check(all(b(1::4) == [(dble(2 * i * (peer + 1)), i = 1, 50)]), &
      'isend and irecv')
    call check(count(b /= 0) == 50, 'irecv writes only the section')
    call check(all(requests == MPI_REQUEST_NULL), 'requests are null')
    call check(statuses(1)%MPI_SOURCE == peer, 'source')
  end subroutine

  ! Large enough for a rendezvous: types are freed long before the end.
  subroutine freed_before_completion
    integer, parameter :: n = 300000
    integer, allocatable, asynchronous :: a(:, :), b(:, :)
    type(MPI_Datatype) :: pair
    type(MPI_Request) :: requests(4)
    integer :: i, j
    allocate(a(3, n), b(3, n))
    a = reshape([(i + rank, i = 1, 3 * n)], [3, n])
    b = 0
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    call MPI_Irecv(b(2, :), n, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, &
      requests(1))
    call MPI_Irecv(b(1::2, :), n, pair, peer, 7, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(a(2, :), n, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, &
      requests(3))
    call MPI_Isend(a(1::2, :), n, pair, peer, 7, MPI_COMM_WORLD, requests(4))
    call MPI_Type_free(pair)
    do i = 1, 4
      call MPI_Waitany(4, requests, j, MPI_STATUS_IGNORE)
      call check(j >= 1 .and. j <= 4, 'index from 1')
    end do
    call MPI_Waitany(4, requests, j, MPI_STATUS_IGNORE)
    call check(j == MPI_UNDEFINED, 'index undefined')
    call check(all(b == a + peer - rank), 'large sections')
  end subroutine

  subroutine persistent
    integer, asynchronous :: a(20), b(20)
    type(MPI_Request) :: requests(2)
    integer :: turn, i
    call MPI_Send_init(a(1::2), 10, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, &
      requests(1))
    call MPI_Recv_init(b(20:2:-2), 10, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, &
      requests(2))
    do turn = 1, 3
      a = [(turn * 100 + i + rank, i = 1, 20)]
      b = 0
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(b(20:2:-2) == a(1::2) + peer - rank), 'persistent')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call MPI_Allreduce_init(a(1::2), b(2::2), 10, MPI_INTEGER, MPI_SUM, &
      MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    do turn = 1, 3
      a = turn + rank
      b = 0
      call MPI_Start(requests(1))
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      call check(all(b(2::2) == ranks * turn + ranks * (ranks - 1) / 2), &
        'persistent reduction')
      call check(all(b(1::2) == 0), 'persistent reduction: gaps')
    end do
    call MPI_Request_free(requests(1))
  end subroutine

  ! The datatype has gaps itself, or is larger than an element.
  subroutine odd_types
    integer, asynchronous :: a(60), b(60)
    type(MPI_Datatype) :: gaps
    type(MPI_Request) :: requests(2)
    integer :: i
    a = [(i + 100 * rank, i = 1, 60)]
    b = 0
    call MPI_Type_vector(3, 1, 2, MPI_INTEGER, gaps)
    call MPI_Type_commit(gaps)
    call MPI_Sendrecv(a(1::3), 2, gaps, peer, 9, b(2::2), 2, gaps, peer, 9, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b([2, 6, 10]) == [1, 7, 13] + 100 * peer), 'gaps')
    call check(count(b /= 0) == 6, 'gaps: the rest')
    b = 0
    call MPI_Irecv(b(2::2), 2, gaps, peer, 10, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(1::3), 2, gaps, peer, 10, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b([2, 6, 10]) == [1, 7, 13] + 100 * peer), 'gaps, later')
    b = 0
    call MPI_Sendrecv(a(1::3), 5, MPI_2INTEGER, peer, 9, b(2::2), 10, &
      MPI_INTEGER, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b(2:20:2) == [(3 * i - 2, i = 1, 10)] + 100 * peer), &
      'larger than an element')
    call MPI_Type_free(gaps)
  end subroutine

  subroutine collectives
    integer :: a(3, 4), all_of(2, 4 * ranks), counts(ranks), displs(ranks), i
    a = reshape([(i, i = 1, 12)], [3, 4]) + 100 * rank
    if (rank == 0) then
      all_of = 0
    else
      all_of = -rank
    end if
    call MPI_Bcast(all_of(1, :), 4 * ranks, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(all(all_of(1, :) == 0) .and. all(all_of(2, :) == -rank), &
      'bcast')
    call MPI_Allgather(a(2, :), 4, MPI_INTEGER, all_of(2, :), 4, MPI_INTEGER, &
      MPI_COMM_WORLD)
    do i = 0, ranks - 1
      call check(all(all_of(2, 4 * i + 1:4 * i + 4) == &
        [2, 5, 8, 11] + 100 * i), 'allgather')
    end do
    counts = 2
    displs = [(4 * i, i = ranks - 1, 0, -1)]
    all_of = 0
    call MPI_Gatherv(a(3, 1:2), 2, MPI_INTEGER, all_of(1, :), counts, displs, &
      MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      do i = 0, ranks - 1
        call check(all(all_of(1, displs(i + 1) + 1:displs(i + 1) + 2) == &
          [3, 6] + 100 * i), 'gatherv')
      end do
    end if
    call check(count(all_of /= 0) == merge(2 * ranks, 0, rank == 0), &
      'gatherv: the rest')
    all_of = 0
    call MPI_Allreduce(a(1, :), all_of(2, 1:4), 4, MPI_INTEGER, MPI_MAX, &
      MPI_COMM_WORLD)
    call check(all(all_of(2, 1:4) == [1, 4, 7, 10] + 100 * (ranks - 1)), &
      'allreduce')
    a = 1
    call MPI_Allreduce(MPI_IN_PLACE, a(::2, 1), 2, MPI_INTEGER, MPI_SUM, &
      MPI_COMM_WORLD)
    call check(all(a(::2, 1) == ranks) .and. a(2, 1) == 1, 'in place')
  end subroutine

  subroutine nonblocking_collectives
    integer, asynchronous :: a(8), b(2, 2 * ranks)
    type(MPI_Datatype) :: types(ranks)
    integer :: counts(ranks), displs(ranks), i
    type(MPI_Request) :: requests(2)
    logical :: flag
    a = [(i + 10 * rank, i = 1, 8)]
    b = 0
    call MPI_Iallgather(a(1:3:2), 2, MPI_INTEGER, b(1, :), 2, MPI_INTEGER, &
      MPI_COMM_WORLD, requests(1))
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE)
    end do
    do i = 0, ranks - 1
      call check(all(b(1, 2 * i + 1:2 * i + 2) == [1, 3] + 10 * i), &
        'iallgather')
    end do
    call check(all(b(2, :) == 0), 'iallgather: gaps')
    ! The array of types may go before the operation is complete.
    call alltoallw(a, b, requests(1))
    call MPI_Ireduce(a(::2), b(2, 1:4), 4, MPI_INTEGER, MPI_SUM, 0, &
      MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    if (rank == 0) call check(all(b(2, 1:4) == &
      [1, 3, 5, 7] * ranks + 5 * ranks * (ranks - 1)), 'ireduce')
    do i = 0, ranks - 1
      call check(b(1, i + 1) == 2 + 10 * i, 'ialltoallw')
    end do
    counts = 0; displs = 0; types = MPI_INTEGER
    call MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, &
      MPI_COMM_WORLD)
  end subroutine

  subroutine alltoallw(a, b, request)
    integer, asynchronous :: a(8), b(2, 2 * ranks)
    type(MPI_Request) :: request
    type(MPI_Datatype), asynchronous :: types(ranks)
    integer, asynchronous, save, allocatable :: counts(:), from(:), to(:)
    integer :: i
    counts = [(1, i = 1, ranks)]
    from = [(4, i = 1, ranks)]
    to = [(4 * i, i = 0, ranks - 1)]
    types = MPI_INTEGER
    call MPI_Ialltoallw(a, counts, from, types, b(1, :), counts, to, types, &
      MPI_COMM_WORLD, request)
    types = MPI_DATATYPE_NULL
  end subroutine

  subroutine packing
    integer :: a(9), b(9), position
    integer(kind=MPI_COUNT_KIND) :: wide
    character(len=100) :: room
    a = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    b = 0
    position = 0
    call MPI_Pack(a(1::2), 5, MPI_INTEGER, room, 100, position, &
      MPI_COMM_WORLD)
    call check(position == 20, 'pack')
    position = 0
    call MPI_Unpack(room, 100, position, b(9:1:-2), 5, MPI_INTEGER, &
      MPI_COMM_WORLD)
    call check(all(b == [9, 0, 7, 0, 5, 0, 3, 0, 1]), 'unpack')
    wide = 0
    b = 0
    call MPI_Pack_external('external32  ', a(1::2), 5_MPI_COUNT_KIND, &
      MPI_INTEGER, room, 100_MPI_COUNT_KIND, wide)
    call check(wide == 20, 'pack_external')
    wide = 0
    call MPI_Unpack_external('external32', room, 100_MPI_COUNT_KIND, wide, &
      b(9:1:-2), 5_MPI_COUNT_KIND, MPI_INTEGER)
    call check(all(b == [9, 0, 7, 0, 5, 0, 3, 0, 1]), 'unpack_external')
  end subroutine

  subroutine negative_stride
    integer :: a(4, 4), b(4, 4), i
    a = reshape([(i, i = 1, 16)], [4, 4]) + 100 * rank
    b = 0
    call MPI_Sendrecv(a(4:1:-1, 4:1:-1), 16, MPI_INTEGER, peer, 1, b, 16, &
      MPI_INTEGER, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(reshape(b, [16]) == [(i, i = 16, 1, -1)] + 100 * peer), &
      'negative strides')
    call MPI_Sendrecv(a(1:0, :), 0, MPI_INTEGER, peer, 1, b(:, 1:0), 0, &
      MPI_INTEGER, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine
end program

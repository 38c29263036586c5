! SPDX-License-Identifier: BSD-3-Clause
! Descriptors that are out of the ordinary: buffers passed on by wrappers,
! parts of derived types, substrings, sizes of zero, scalars, absolute
! addresses, arguments that do not count, and all kinds of LOGICAL.
module corners_pass
  use mpi_f08
  implicit none
contains

  subroutine by_rank(buf, count, type, peer, to)
    type(*), dimension(..), intent(in) :: buf
    type(*), dimension(..) :: to
    integer, intent(in) :: count, peer
    type(MPI_Datatype), intent(in) :: type
    call MPI_Sendrecv(buf, count, type, peer, 1, to, count, type, peer, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine by_shape(buf, count, type, peer, to)
    integer, intent(in) :: buf(:, :), count, peer
    integer :: to(:, :)
    type(MPI_Datatype), intent(in) :: type
    call MPI_Sendrecv(buf, count, type, peer, 3, to, count, type, peer, 3, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine assumed(buf, count, type, peer, to)
    integer, intent(in) :: buf(3, *), count, peer
    integer :: to(3, *)
    type(MPI_Datatype), intent(in) :: type
    call MPI_Sendrecv(buf, count, type, peer, 4, to, count, type, peer, 4, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(buf(2:3, 1:2), 4, type, peer, 5, to(1:2, 3:4), 4, &
      type, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

end module

program corners
  use mpi_f08
  use corners_pass
  implicit none
  integer :: rank, ranks, peer, errors
  errors = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  peer = ieor(rank, 1)
  call passed_on
  call parts_of_types
  call strings
  call nothing
  call scalars
  call pointers
  call absolute
  call does_not_count
  call logicals
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (errors /= 0) error stop 1

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    if (ok) return
    print '(i0,2a)', rank, ': wrong: ', what
    errors = errors + 1
  end subroutine

  subroutine passed_on
    integer :: a(6, 4), b(6, 4), i
    a = reshape([(i, i = 1, 24)], [6, 4]) + 100 * rank
    b = 0
    call by_rank(a(2:6:2, :), 12, MPI_INTEGER, peer, b(1:5:2, :))
    call check(all(b(1:5:2, :) == a(2:6:2, :) + 100 * (peer - rank)) .and. &
      count(b /= 0) == 12, 'passed on by dimension(..)')
    b = 0
    call by_shape(a(6:2:-2, 4:1:-1), 12, MPI_INTEGER, peer, b(1:5:2, :))
    call check(all(b(1:5:2, :) == a(6:2:-2, 4:1:-1) + &
      100 * (peer - rank)) .and. count(b /= 0) == 12, 'passed on by shape')
    b = 0
    call assumed(a, 6, MPI_INTEGER, peer, b)
    call check(all(b(:, 1) == a(:, 1) + 100 * (peer - rank)), 'assumed size')
    call check(all(b(:, 2) == [2, 3, 0, 5, 6, 0] + &
      100 * peer * [1, 1, 0, 1, 1, 0]), 'section of an assumed size')
  end subroutine

  subroutine parts_of_types
    type :: particle
      sequence
      double precision :: x
      integer :: kind, mark
    end type
    type(particle) :: a(9), b(9)
    integer :: i
    do i = 1, 9
      a(i) = particle(i + 10d0 * rank, 2 * i + rank, 3)
    end do
    b = particle(0d0, 0, 0)
    call by_rank(a(:)%kind, 9, MPI_INTEGER, peer, b(:)%mark)
    call check(all(b%mark == a%kind + peer - rank) .and. all(b%kind == 0), &
      'component')
    call by_rank(a(1:9:2)%x, 5, MPI_DOUBLE_PRECISION, peer, b(9:1:-2)%x)
    call check(all(b(9:1:-2)%x == a(1:9:2)%x + 10 * (peer - rank)) .and. &
      all(b(2:8:2)%x == 0), 'component of a section')
  end subroutine

  subroutine strings
    character(len=7) :: a(5), b(5)
    character(len=0) :: none
    integer :: i
    do i = 1, 5
      a(i) = 'abcdef' // achar(iachar('0') + i + rank)
    end do
    b = '.......'
    call by_rank(a(1:5:2)(6:7), 6, MPI_CHARACTER, peer, b(1:3)(2:3))
    do i = 1, 3
      call check(b(i) == '.f' // achar(iachar('0') + 2 * i - 1 + peer) // &
        '....', 'substrings')
    end do
    call check(all(b(4:5) == '.......'), 'substrings: the rest')
    call by_rank(a(2:4), 21, MPI_CHARACTER, peer, b(1:3))
    call check(b(2)(1:6) == 'abcdef', 'whole strings')
    call by_rank(a(4)(3:5), 3, MPI_CHARACTER, peer, b(5)(1:3))
    call check(b(5) == 'cde....', 'a substring')
    call MPI_Sendrecv(none, 0, MPI_CHARACTER, peer, 6, none, 0, &
      MPI_CHARACTER, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine nothing
    integer :: a(4, 4), b(4, 4), n
    integer, allocatable :: empty(:, :)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status
    allocate (empty(0, 3))
    a = rank
    b = -1
    n = 0
    call MPI_Sendrecv(a(3:1, :), 0, MPI_INTEGER, peer, 7, b(:, 4:1:2), 0, &
      MPI_INTEGER, peer, 7, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, n)
    call check(n == 0, 'count of nothing')
    call MPI_Irecv(empty, 0, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, &
      requests(1))
    call MPI_Isend(a(1:0, 1:4:2), 0, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, &
      requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    ! No element of a section that has some.
    call MPI_Sendrecv(a(1:4:2, 1:4:2), 0, MPI_INTEGER, peer, 9, &
      b(1:4:3, 1), 2, MPI_INTEGER, peer, 9, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, n)
    call check(n == 0 .and. all(b == -1), 'nothing into something')
    call MPI_Allreduce(a(1:0:2, 1), b(4:1, 2), 0, MPI_INTEGER, MPI_SUM, &
      MPI_COMM_WORLD)
    call MPI_Bcast(b(:, 3:2), 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(all(b == -1), 'nothing is written')
  end subroutine

  subroutine scalars
    integer :: a(3), b(3)
    a = [1, 2, 3] + 10 * rank
    b = 0
    call by_rank(a(2), 2, MPI_INTEGER, peer, b(1))
    call check(all(b == [2, 3, 0] + 10 * peer * [1, 1, 0]), 'element')
    b(1) = 0
    call MPI_Allreduce(rank + 1, b(1), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(b(1) == ranks * (ranks + 1) / 2, 'expression')
  end subroutine

  subroutine pointers
    integer, target :: room(8, 8)
    integer, pointer :: p(:, :), q(:)
    integer :: i
    room = 0
    p => room(8:1:-3, 2::2)
    p = reshape([(i, i = 1, 12)], [3, 4]) + 100 * rank
    q => room(:, 1)
    call by_rank(p, 8, MPI_INTEGER, peer, q)
    call check(all(q == [(i, i = 1, 8)] + 100 * peer), 'pointer')
    ! One column: extents of 1 do not make it a section with gaps.
    call by_rank(p(1:1, 1:1), 1, MPI_INTEGER, peer, room(3:3, 1:1))
    call check(room(3, 1) == 1 + 100 * peer, 'one element of a pointer')
  end subroutine

  subroutine absolute
    integer, asynchronous :: a(4), b(4)
    integer(kind=MPI_ADDRESS_KIND) :: place(1)
    type(MPI_Datatype) :: from, to
    a = [1, 2, 3, 4] + rank
    b = 0
    call MPI_Get_address(a, place(1))
    call MPI_Type_create_struct(1, [4], place, [MPI_INTEGER], from)
    call MPI_Get_address(b, place(1))
    call MPI_Type_create_struct(1, [4], place, [MPI_INTEGER], to)
    call MPI_Type_commit(from)
    call MPI_Type_commit(to)
    call MPI_F_sync_reg(a)
    call MPI_Sendrecv(MPI_BOTTOM, 1, from, peer, 1, b, 4, MPI_INTEGER, peer, &
      1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b == [1, 2, 3, 4] + peer), 'from absolute addresses')
    call by_rank(MPI_BOTTOM, 0, from, peer, MPI_BOTTOM)
    b = 0
    call MPI_F_sync_reg(b)
    call MPI_Sendrecv(MPI_BOTTOM, 1, from, peer, 1, MPI_BOTTOM, 1, to, peer, &
      1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_F_sync_reg(b)
    call check(all(b == [1, 2, 3, 4] + peer), 'between absolute addresses')
    call MPI_Type_free(from)
    call MPI_Type_free(to)
  end subroutine

  ! What only root needs is nonsense elsewhere.
  subroutine does_not_count
    integer :: a(6), b(2, 12), n
    type(MPI_Datatype) :: type
    a = rank
    b = -1
    n = 3
    type = MPI_INTEGER
    if (rank /= 0) then
      n = 1
      type%MPI_VAL = 123456789
    end if
    call MPI_Gather(a(1::2), 3, MPI_INTEGER, b(1, :), n, type, 0, &
      MPI_COMM_WORLD)
    if (rank == 0) call check(all(b(1, 1:6) == [0, 0, 0, 1, 1, 1]), 'gather')
    call check(all(b(2, :) == -1) .and. (rank == 0 .or. all(b == -1)), &
      'gather: the rest')
    call MPI_Scatter(b(1, :), n, type, a(2::2), 3, MPI_INTEGER, 0, &
      MPI_COMM_WORLD)
    call check(all(a(2::2) == rank), 'scatter')
    call MPI_Reduce(a(1::2), b(2, 1:3), 3, MPI_INTEGER, MPI_SUM, 0, &
      MPI_COMM_WORLD)
    if (rank /= 0) call check(all(b == -1), 'reduce')
    ! Root's own part is in place; its type does not count then.
    if (rank == 0) then
      type%MPI_VAL = 123456789
      b(1, 1:3) = 7
      call MPI_Gather(MPI_IN_PLACE, 1, type, b(1, :), 3, MPI_INTEGER, 0, &
        MPI_COMM_WORLD)
      call check(all(b(1, 1:6) == [7, 7, 7, 1, 1, 1]), 'gather in place')
    else
      call MPI_Gather(a(2::2), 3, MPI_INTEGER, b(1, :), n, type, 0, &
        MPI_COMM_WORLD)
    end if
  end subroutine

  subroutine logicals
    logical :: d(3)
    logical(1) :: l1(5)
    logical(2) :: l2(5)
    logical(4) :: l4(5)
    logical(8) :: l8(5)
    logical(16) :: l16(5)
    d = [.true., rank == 0, .false.]
    call MPI_Allreduce(MPI_IN_PLACE, d, 3, MPI_LOGICAL, MPI_LXOR, &
      MPI_COMM_WORLD)
    call check(all(d .eqv. [mod(ranks, 2) == 1, .true., .false.]), 'LOGICAL')
    l1 = [.true., rank == 0, .false., rank /= 0, .true.]
    l2 = l1
    l4 = l1
    l8 = l1
    l16 = l1
    call MPI_Allreduce(MPI_IN_PLACE, l1, 5, MPI_LOGICAL1, MPI_LAND, &
      MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, l2, 5, MPI_LOGICAL2, MPI_LAND, &
      MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, l4, 5, MPI_LOGICAL4, MPI_LAND, &
      MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, l8, 5, MPI_LOGICAL8, MPI_LAND, &
      MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, l16, 5, MPI_LOGICAL16, MPI_LAND, &
      MPI_COMM_WORLD)
    call all_as('LAND', l1, l2, l4, l8, l16, [.true., .false., .false., &
      .false., .true.])
    l2(1:5:2) = [.false., rank == 1, .true.]
    call MPI_Allreduce(MPI_IN_PLACE, l2(1:5:2), 3, MPI_LOGICAL2, MPI_LOR, &
      MPI_COMM_WORLD)
    call check(all(l2 .eqv. [.false., .false., .true., .false., .true.]), &
      'LOR of a section')
    l16 = [.true., .false., .true., .true., .false.]
    if (rank == 1) l16 = .not. l16
    call by_rank(l16(1:5:2), 3, MPI_LOGICAL16, peer, l16(1:3))
    d = l16(1:3)
    call check(all(d .eqv. [.true., .true., .false.] .neqv. (peer == 1)), &
      'LOGICAL(16) of a section')
  end subroutine

  subroutine all_as(what, l1, l2, l4, l8, l16, wanted)
    character(len=*), intent(in) :: what
    logical(1), intent(in) :: l1(:)
    logical(2), intent(in) :: l2(:)
    logical(4), intent(in) :: l4(:)
    logical(8), intent(in) :: l8(:)
    logical(16), intent(in) :: l16(:)
    logical, intent(in) :: wanted(:)
    call check(all(l1 .eqv. wanted), what // ' of LOGICAL(1)')
    call check(all(l2 .eqv. wanted), what // ' of LOGICAL(2)')
    call check(all(l4 .eqv. wanted), what // ' of LOGICAL(4)')
    call check(logical(all(l8 .eqv. wanted)), what // ' of LOGICAL(8)')
    call check(logical(all(l16 .eqv. wanted)), what // ' of LOGICAL(16)')
  end subroutine
end program

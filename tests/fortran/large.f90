! SPDX-License-Identifier: BSD-3-Clause
! Large counts by the one generic name of mpi_f08.
program large
  use mpi_f08
  implicit none
  integer(kind=MPI_COUNT_KIND) :: n, lb, extent, size
  integer(kind=MPI_COUNT_KIND) :: lengths(2), places(2)
  integer, asynchronous :: a(40), b(40)
  integer :: rank, peer, errors, i, small
  type(MPI_Datatype) :: huge_type, indexed
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  errors = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  peer = ieor(rank, 1)
  n = 10
  a = [(i + 100 * rank, i = 1, 40)]
  b = 0
  call MPI_Irecv(b(1::4), n, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request)
  call MPI_Send(a(1::2), n, MPI_INTEGER, peer, 1, MPI_COMM_WORLD)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call MPI_Get_count(status, MPI_INTEGER, small)
  if (n /= 10 .or. small /= 10) errors = errors + 1
  if (any(b(1::4) /= [(2 * i - 1, i = 1, 10)] + 100 * peer)) &
    errors = errors + 1
  n = 3000000000_MPI_COUNT_KIND
  call MPI_Type_contiguous(n, MPI_INTEGER, huge_type)
  call MPI_Type_size(huge_type, size)
  call MPI_Type_size(huge_type, small)
  if (size /= 4 * n .or. small /= MPI_UNDEFINED) errors = errors + 1
  call MPI_Type_get_extent(huge_type, lb, extent)
  if (lb /= 0 .or. extent /= 4 * n) errors = errors + 1
  call MPI_Type_free(huge_type)
  lengths = [2, 3]
  places = [0, 20]
  call MPI_Type_indexed(2_MPI_COUNT_KIND, lengths, places, MPI_INTEGER, &
    indexed)
  call MPI_Type_commit(indexed)
  b = 0
  call MPI_Sendrecv(a, 1_MPI_COUNT_KIND, indexed, peer, 2, b, &
    5_MPI_COUNT_KIND, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, status)
  if (any(b(1:5) /= [1, 2, 21, 22, 23] + 100 * peer)) errors = errors + 1
  call MPI_Type_free(indexed)
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1_MPI_COUNT_KIND, MPI_INTEGER, &
    MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0 .and. errors == 0) print '(a)', 'No Errors'
  call MPI_Finalize()
  if (errors /= 0) stop 1
end program

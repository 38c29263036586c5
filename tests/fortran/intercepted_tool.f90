! SPDX-License-Identifier: BSD-3-Clause
! Replaces specific procedures of mpi_f08 and calls PMPI_ ones.
module tool_state
  implicit none
  integer :: count = 0
end module

subroutine MPI_Comm_rank_f08(comm, rank, ierror)
  use mpi_f08, only: MPI_Comm, PMPI_Comm_rank
  use tool_state
  implicit none
  type(MPI_Comm), intent(in) :: comm
  integer, intent(out) :: rank
  integer, optional, intent(out) :: ierror
  count = count + 1
  call PMPI_Comm_rank(comm, rank, ierror)
end subroutine

subroutine send_tool(buf, n, datatype, dest, tag, comm, ierror) &
    bind(C, name='mpi_send_f08ts_')
  use mpi_f08, only: MPI_Comm, MPI_Datatype, PMPI_Send
  use tool_state
  implicit none
  type(*), dimension(..), intent(in) :: buf
  integer, intent(in) :: n, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  count = count + 10
  call PMPI_Send(buf, n, datatype, dest, tag, comm, ierror)
end subroutine

integer function tool_calls()
  use tool_state
  implicit none
  tool_calls = count
end function

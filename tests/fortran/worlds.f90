! SPDX-License-Identifier: BSD-3-Clause
! Ports, names and children through all three interfaces, from one source: F08,
! MODULE or HEADER says which. The children are this program.
#ifdef F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
program worlds
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
  character(len=*), parameter :: service = 'a service of Fortran'
  character(len=1000) :: program_name
  HANDLE(MPI_Comm) :: parent
  integer :: rank, size, errors = 0, all_errors, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call get_command_argument(0, program_name)
  call MPI_Comm_get_parent(parent, ierror)
  if (parent == MPI_COMM_NULL) then
    call meet_by_name
    call spawn_without_words
    call spawn_with_words
    call spawn_several
    call spawn_nothing
  else
    call be_child
  end if
  call MPI_Allreduce(errors, all_errors, 1, MPI_INTEGER, MPI_SUM, &
    MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
  if (all_errors /= 0) stop 1
  if (parent == MPI_COMM_NULL .and. rank == 0) print '(a)', 'No Errors'

contains

  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(a, i0, 2a)', 'rank ', rank, ': ', what
    errors = errors + 1
  end subroutine

  integer function class_of(code)
    integer, intent(in) :: code
    call MPI_Error_class(code, class_of, ierror)
  end function

  ! Both sides are one, and part. here, there: processes.
  subroutine be_together(inter, is_high, here, there)
    HANDLE(MPI_Comm), intent(inout) :: inter
    logical, intent(in) :: is_high
    integer, intent(in) :: here, there
    HANDLE(MPI_Comm) :: both
    integer :: n
    call MPI_Comm_remote_size(inter, n, ierror)
    call check(n == there, 'the size of the other side')
    call MPI_Intercomm_merge(inter, is_high, both, ierror)
    n = merge(1000, 1, is_high)
    call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, both, ierror)
    call check(n == merge(1000 * here + there, here + 1000 * there, is_high), &
      'a sum over both sides')
    call MPI_Comm_free(both, ierror)
    call MPI_Comm_disconnect(inter, ierror)
    call check(inter == MPI_COMM_NULL, 'a handle after MPI_Comm_disconnect')
  end subroutine

  subroutine meet_by_name
    character(len=MPI_MAX_PORT_NAME) :: port, found
    HANDLE(MPI_Comm) :: inter
    integer :: class
    port = ' '
    if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port, ierror)
      call check(len_trim(port) > 0, 'MPI_Open_port')
      call MPI_Publish_name(service // '  ', MPI_INFO_NULL, port, ierror)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    found = '?'
    call MPI_Lookup_name(service, MPI_INFO_NULL, found, ierror)
    if (rank == 0) then
      call check(found == port, 'MPI_Lookup_name')
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, ierror)
      call be_together(inter, .true., 1, 1)
    else if (rank == 1) then
      call MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, &
        ierror)
      call be_together(inter, .false., 1, 1)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) then
      call MPI_Unpublish_name(service, MPI_INFO_NULL, port, ierror)
      call MPI_Close_port(port, ierror)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
    call MPI_Lookup_name(service, MPI_INFO_NULL, found, class)
    call check(class_of(class) == MPI_ERR_NAME, 'a name that is withdrawn')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
  end subroutine

  ! Only root's command counts.
  subroutine spawn_without_words
    HANDLE(MPI_Comm) :: inter
    if (rank == 0) then
      call MPI_Comm_spawn(program_name, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, &
        MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE, ierror)
    else
      call MPI_Comm_spawn(' ', MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, &
        MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE, ierror)
    end if
    call be_together(inter, .false., size, 2)
  end subroutine

  subroutine spawn_with_words
    character(len=20) :: words(3)
    HANDLE(MPI_Comm) :: inter
    integer :: codes(2)
    words = [character(len=20) :: ' one', 'of two words', ' ']
    codes = -1
    call MPI_Comm_spawn(program_name, words, 2, MPI_INFO_NULL, size - 1, &
      MPI_COMM_WORLD, inter, codes, ierror)
    call check(all(codes == MPI_SUCCESS), 'error codes of children')
    call be_together(inter, .false., size, 2)
  end subroutine

  subroutine spawn_several
    character(len=1000) :: commands(2)
    character(len=20) :: words(2, 3)
    HANDLE(MPI_Comm) :: inter
    HANDLE(MPI_Info) :: infos(2)
    integer :: codes(3), counts(2)
    commands = program_name
    words(1, :) = [character(len=20) :: 'several', '0', ' ']
    words(2, :) = [character(len=20) :: 'several', '1', ' ']
    infos = MPI_INFO_NULL
    counts = [1, 2]
    codes = -1
    call MPI_Comm_spawn_multiple(merge(2, -1, rank == 0), commands, words, &
      counts, infos, 0, MPI_COMM_WORLD, inter, codes, ierror)
    call check(all(codes == MPI_SUCCESS), 'error codes of two programs')
    call be_together(inter, .false., size, 3)
    call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, &
      0, MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE, ierror)
    call be_together(inter, .false., size, 3)
  end subroutine

  subroutine spawn_nothing
    HANDLE(MPI_Comm) :: inter
    integer :: codes(2), class
    codes = MPI_SUCCESS
    inter = MPI_COMM_WORLD
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_spawn('/nowhere/at/all', MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, &
      MPI_COMM_WORLD, inter, codes, class)
    call check(class_of(class) == MPI_ERR_SPAWN, 'the class of no program')
    call check(class_of(codes(1)) == MPI_ERR_SPAWN .and. &
      class_of(codes(2)) == MPI_ERR_SPAWN, 'the error codes of no program')
    call check(inter == MPI_COMM_NULL, 'the communicator of no program')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
  end subroutine

  subroutine be_child
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=20) :: word
    integer :: n, there
    call MPI_Comm_get_name(parent, name, n, ierror)
    call check(name(:n) == 'MPI_COMM_PARENT', 'the name of the parents')
    call get_command_argument(1, word)
    if (word == 'several') then
      call get_command_argument(2, word)
      call check(word == merge('0', '1', rank == 0), 'which program it is')
    else if (word == 'one') then
      call get_command_argument(2, word)
      call check(word == 'of two words', 'the second argument')
      call check(command_argument_count() == 2, 'two arguments')
    else
      call check(command_argument_count() == 0, 'no argument')
    end if
    call MPI_Comm_remote_size(parent, there, ierror)
    call be_together(parent, .true., size, there)
    call MPI_Comm_get_parent(parent, ierror)
    call check(parent == MPI_COMM_NULL, 'parents that have gone')
    parent = MPI_COMM_WORLD
  end subroutine
end program

/*
 * Refuses memory to one process, from one of its requests on. Preloaded into a server (LD_PRELOAD) by refused_memory.py; the
 * environment variable REFUSE names a file that holds a struct request.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct request
{
	volatile int pid;			/* which process; 0 for none */
	volatile int once;			/* is only one request refused? */
	volatile long left;			/* requests until the first that is refused */
};

static struct request *asked;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("REFUSE");
	int			file = path ? open(path, O_RDWR) : -1;
	void	   *shared;

	if (file < 0)
		return;
	shared = (void *) syscall(SYS_mmap, NULL, sizeof(struct request), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (shared != MAP_FAILED)
		asked = shared;
}

static int
is_refused(void)
{
	long		left;

	if (asked == NULL || asked->pid == 0 || asked->pid != getpid())
		return 0;
	left = asked->left--;
	if (left > 0 || (asked->once && left < 0))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *
malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *block, size_t size)
{
	return size > 0 && is_refused() ? NULL : __libc_realloc(block, size);
}

void *
aligned_alloc(size_t alignment, size_t size)
{
	return is_refused() ? NULL : __libc_memalign(alignment, size);
}

int
posix_memalign(void **block, size_t alignment, size_t size)
{
	*block = aligned_alloc(alignment, size);
	return *block ? 0 : ENOMEM;
}

void *
mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
	if ((flags & MAP_ANONYMOUS) && is_refused())
		return MAP_FAILED;
	return (void *) syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

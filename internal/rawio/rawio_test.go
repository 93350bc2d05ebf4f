package rawio

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is two connected sockets that do not block.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}

	for _, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
	}

	return fds[0], fds[1]
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	a, b := pair(t)
	buffer := make([]byte, 16)
	if n, err := Read(b, buffer); n != 0 || err != unix.EAGAIN {
		t.Errorf("of nothing %d bytes are read, %v", n, err)
	}
	if n, err := Write(a, []byte("hello")); n != 5 || err != nil {
		t.Fatalf("%d bytes are written, %v", n, err)
	}
	if n, err := Read(b, buffer); err != nil || !bytes.Equal(buffer[:n], []byte("hello")) {
		t.Errorf("%q is read, %v", buffer[:n], err)
	}

	for _, call := range []func(int, []byte) (int, error){Read, Write} {
		if n, err := call(a, nil); n != 0 || err != nil {
			t.Errorf("no bytes: %d, %v", n, err)
		}
	}
}

func TestWriteTakesWhatFits(t *testing.T) {
	a, b := pair(t)
	piece, written := make([]byte, 1<<20), 0
	for {
		n, err := Write(a, piece)
		if err == unix.EAGAIN && n == 0 {
			break
		}
		if err != nil || n == 0 {
			t.Fatalf("%d bytes, %v", n, err)
		}

		written += n
	}

	read := 0
	for {
		n, err := Read(b, piece)
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			t.Fatal(err)
		}

		read += n
	}

	if read != written || written == 0 {
		t.Errorf("%d bytes were written, %d read", written, read)
	}
}

func TestTheOtherEndIsGone(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])

	if err := unix.Close(fds[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := Read(fds[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := Write(fds[0], []byte("x")); n != 0 || err != unix.EPIPE { // and no signal
		t.Errorf("%d bytes, %v", n, err)
	}
}

package recording

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"
)

// s3Reader reads an object in windows, with one request for each: a small one after a
// seek, because the first reads are those of a header and of the last chunk, and larger
// ones while reading continues. So a seek wastes little, and a client that pauses does not
// keep a request open for long.
type s3Reader struct {
	ctx   context.Context
	store *S3
	name  string
	size  int64

	pos        int64
	body       io.ReadCloser // from pos to end; nil: no request is open
	windowEnd  int64         // position at which body ends; of the last window where body is nil
	windowSize int64         // bytes of the last window that was asked for
}

const (
	minWindowBytes = 128 << 10
	maxWindowBytes = 8 << 20
)

// Read implements io.Reader.
func (o *s3Reader) Read(p []byte) (int, error) {
	if o.pos >= o.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}

	if o.body == nil {
		if err := o.openWindow(); err != nil {
			return 0, err
		}
	}

	n, err := o.body.Read(p[:min(int64(len(p)), o.windowEnd-o.pos)])
	o.pos += int64(n)
	switch {
	case o.pos == o.windowEnd:
		err = o.closeBody()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errShortResponse
	}

	return n, s3Error(err, "reading a recording")
}

// errShortResponse replaces the end of file of a truncated response, which would otherwise
// be taken for the end of a truncated recording.
var errShortResponse = errors.New("the store's response is truncated")

// openWindow requests the next window.
func (o *s3Reader) openWindow() error {
	if o.pos > 0 && o.pos == o.windowEnd {
		o.windowSize = min(2*o.windowSize, maxWindowBytes)
	} else {
		o.windowSize = minWindowBytes
	}

	end := min(o.pos+o.windowSize, o.size)
	var options minio.GetObjectOptions
	if err := options.SetRange(o.pos, end-1); err != nil {
		return s3Error(err, "reading a recording")
	}

	core := minio.Core{Client: o.store.client}
	body, _, _, err := core.GetObject(o.ctx, o.store.cfg.Bucket, o.name, options)
	if err != nil {
		return s3Error(err, "reading a recording")
	}

	o.body, o.windowEnd = body, end
	return nil
}

// closeBody ends the current request, if any.
func (o *s3Reader) closeBody() error {
	if o.body == nil {
		return nil
	}
	err := o.body.Close()
	o.body = nil
	return err
}

// Seek implements io.Seeker.
func (o *s3Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += o.pos
	case io.SeekEnd:
		offset += o.size
	}

	if offset < 0 {
		return 0, errors.New("a position before the start")
	}
	if offset == o.pos {
		return offset, nil
	}

	o.pos = offset
	return offset, s3Error(o.closeBody(), "reading a recording")
}

// Close implements io.Closer.
func (o *s3Reader) Close() error { return s3Error(o.closeBody(), "reading a recording") }

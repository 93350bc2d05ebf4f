package recording

import (
	"context"
	"errors"
	"io"

	"trunkline/internal/fault"
	"trunkline/telephony/audio"
)

const (
	// OpusType is the content type of a recording in Opus.
	OpusType   = "audio/ogg"
	formatOpus = "opus"
)

// Opus returns the audio, which must be WAV and at its start, as Ogg Opus of a fifth of its size or so. It is
// encoded as it is read; the calls that this process connects keep half of the CPUs. Returns fault.KindUnsupported
// for other audio.
func (a *Audio) Opus(ctx context.Context) (io.Reader, error) { return newOpus(ctx, a.encoders, a) }

// opusReader is Ogg Opus that is encoded while there is an encoder free.
type opusReader struct {
	ctx      context.Context
	encoders chan struct{} // objects.encoders
	opus     io.Reader
}

func newOpus(ctx context.Context, encoders chan struct{}, file io.Reader) (io.Reader, error) {
	wav, err := audio.NewWAV(file)
	var opus io.Reader
	if err == nil {
		opus, err = audio.NewOggOpus(wav)
	}
	if err != nil {
		return nil, notWAV(err)
	}
	return &opusReader{ctx: ctx, encoders: encoders, opus: opus}, nil
}

// notWAV returns the error of reading a WAV file: that of the store or of damage, which has a kind, or else
// fault.KindUnsupported.
func notWAV(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return &fault.Error{Kind: fault.KindUnsupported, Message: "the recording is not a WAV file of 16 bits or G.711",
		Cause: err}
}

// Read implements io.Reader.
func (o *opusReader) Read(p []byte) (int, error) {
	select {
	case o.encoders <- struct{}{}:
	case <-o.ctx.Done():
		return 0, o.ctx.Err()
	}
	defer func() { <-o.encoders }()
	return o.opus.Read(p)
}

package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"trunkline/telephony/g711"
)

// WAV reads the samples of a WAV file: PCM of 16 bits or G.711, one or two channels.
type WAV struct {
	Rate     int // Hz
	Channels int

	samples io.Reader // at their first byte
	decode  func(pcm []int16, encoded []byte) []int16
	size    int    // bytes of a sample of one channel; 0 before the fmt chunk
	encoded []byte // buffer of Read
}

// maxWAVFormatBytes is the size of the largest fmt chunk that is read.
const maxWAVFormatBytes = 1 << 10

// NewWAV reads the header of a WAV file. A recorder that was killed leaves a size of its own making: samples are
// read to the end of the file at most.
func NewWAV(file io.Reader) (*WAV, error) {
	var riff [12]byte
	if err := readWAV(file, riff[:]); err != nil {
		return nil, err
	}
	if string(riff[:4]) != "RIFF" || string(riff[8:]) != "WAVE" {
		return nil, errors.New("audio: not a WAV file")
	}

	w := &WAV{}
	for {
		var header [8]byte
		if err := readWAV(file, header[:]); err != nil {
			return nil, err
		}

		name, size := string(header[:4]), int64(binary.LittleEndian.Uint32(header[4:]))
		if name == "data" && w.size > 0 {
			w.samples = file
			// A recorder that was killed may have left no size.
			if size > 0 {
				w.samples = io.LimitReader(file, size)
			}
			return w, nil
		}

		if name == "fmt " && size <= maxWAVFormatBytes {
			// Chunks are padded to an even length.
			format := make([]byte, size+size%2)
			if err := readWAV(file, format); err != nil {
				return nil, err
			}
			if err := w.setFormat(format); err != nil {
				return nil, err
			}

			continue
		}

		_, err := io.CopyN(io.Discard, file, size+size%2)
		if err != nil {
			return nil, fmt.Errorf("audio: reading a WAV file: %w", err)
		}
	}
}

// readWAV fills into from the file. A file that ends first is not a WAV file.
func readWAV(file io.Reader, into []byte) error {
	_, err := io.ReadFull(file, into)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("audio: not a whole WAV file")
	}
	return err
}

// setFormat reads a fmt chunk.
func (w *WAV) setFormat(format []byte) error {
	if len(format) < 16 {
		return errors.New("audio: not a WAV file: its format is too short")
	}

	// The registered format tags: 1 is PCM, 6 A-law, 7 mu-law; the extensible one has its own further on.
	kind := binary.LittleEndian.Uint16(format)
	const extensible = 0xFFFE
	if kind == extensible && len(format) >= 26 {
		kind = binary.LittleEndian.Uint16(format[24:])
	}

	bits := binary.LittleEndian.Uint16(format[14:])
	w.Channels, w.Rate = int(binary.LittleEndian.Uint16(format[2:])), int(binary.LittleEndian.Uint32(format[4:]))
	switch {
	case kind == 1 && bits == 16:
		w.size, w.decode = 2, pcm16Codec{}.appendSamples
	case kind == 6 && bits == 8:
		w.size, w.decode = 1, g711.ALaw().Decode
	case kind == 7 && bits == 8:
		w.size, w.decode = 1, g711.ULaw().Decode
	default:
		return fmt.Errorf(
			"audio: a WAV file of format %d with %d bits is not supported: only PCM of 16 bits and G.711 are", kind,
			bits)
	}

	if w.Channels < 1 || w.Channels > 2 {
		return fmt.Errorf("audio: a WAV file of %d channels is not supported", w.Channels)
	}

	return nil
}

// Read reads the next samples, interleaved where there are two channels. Fewer than len(pcm) are the last.
func (w *WAV) Read(pcm []int16) (n int, err error) {
	w.encoded = append(w.encoded[:0], make([]byte, len(pcm)*w.size)...)
	read, err := io.ReadFull(w.samples, w.encoded)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	whole := read - read%(w.size*w.Channels)
	n = len(w.decode(pcm[:0], w.encoded[:whole]))
	clear(w.encoded)
	return n, nil
}

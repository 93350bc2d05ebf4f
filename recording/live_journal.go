package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"trunkline/recording/envelope"
)

// A journal is the file of a recording in progress: records of a kind, a length, a number of
// samples and a payload. The first describes the recording. Records of audio follow, each of at
// most a second or so, and of pauses. Where the recording is sealed, each record of audio is a
// sealed recording of its own, which begins with its number, so that it can be read and is
// authentic whatever becomes of the process; else it is the samples. What a crash cut off is left
// out, and so is what is behind a record of no known kind: a power loss leaves zeros.
const (
	journalDescription = 'd'
	journalAudio       = 'a'
	journalPause       = 'p'

	journalHeaderSize = 1 + 4 + 4
	maxJournalRecord  = 1 << 20
	bytesPerSample    = 4 // of both channels
)

// liveRecordingDescription is the first record of a journal.
type liveRecordingDescription struct {
	AccountID   string `json:"account_id"`
	RecordingID string `json:"recording_id"`
	Call        Call   `json:"call"`
	Sealed      bool   `json:"sealed"`
	Algorithm   string `json:"algorithm,omitempty"`
	KeyVersion  int64  `json:"key_version,omitempty"`
}

// journal writes the file of a recording in progress.
type journal struct {
	file          *os.File
	sealer        *recordingSealer // nil: plain
	params        envelope.Params
	number        uint64 // of the next sealed record of audio
	pausesWritten int    // that are written
}

// createJournal creates a journal. The caller closes it.
func createJournal(name string, d liveRecordingDescription, sealer *recordingSealer,
	params envelope.Params) (*journal, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fileError(err, "creating the file of a recording in progress")
	}

	j := &journal{file: file, sealer: sealer, params: params}
	text, err := json.Marshal(d)
	if err == nil {
		err = j.write(journalDescription, 0, text)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(name))
	}

	return j, nil
}

// write appends a record in one write.
func (j *journal) write(kind byte, samples int, payload []byte) error {
	record := make([]byte, journalHeaderSize, journalHeaderSize+len(payload))
	record[0] = kind
	binary.BigEndian.PutUint32(record[1:], uint32(len(payload)))
	binary.BigEndian.PutUint32(record[5:], uint32(samples))
	_, err := j.file.Write(append(record, payload...))
	return fileError(err, "writing a recording in progress")
}

// writeAudio appends interleaved samples.
func (j *journal) writeAudio(pcm []byte) error {
	n := len(pcm) / bytesPerSample
	if j.sealer == nil {
		return j.write(journalAudio, n, pcm)
	}

	numbered := make([]byte, 8, 8+len(pcm))
	binary.BigEndian.PutUint64(numbered, j.number)
	j.number++
	numbered = append(numbered, pcm...)
	// Samples that are sealed on the disk do not stay in memory.
	defer clear(numbered)

	var sealed bytes.Buffer
	_, _, err := envelope.Seal(&sealed, bytes.NewReader(numbered), j.params)
	if err != nil {
		return err
	}

	return j.write(journalAudio, n, sealed.Bytes())
}

func (j *journal) writePause(p Pause) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return j.write(journalPause, 0, text)
}

// journalReader reads a journal's audio as a WAV file.
type journalReader struct {
	file        *os.File
	description liveRecordingDescription
	pauses      []Pause
	samples     int64               // of each channel, in all records of audio
	rootOf      envelope.RootFinder // set before the first Read of a sealed journal

	rest        []byte // of the WAV file, not read yet
	samplesLeft int64  // samples behind rest
	number      uint64 // of the next sealed record of audio
}

// errNoDescription is returned for a journal that ends before its description.
var errNoDescription = errors.New("the journal has no description")

// openJournal reads what a journal has, up to a record that is incomplete or broken. The caller closes file.
// Returns errNoDescription where there is none.
func openJournal(file *os.File) (*journalReader, error) {
	r := &journalReader{file: file}
	for first := true; ; first = false {
		kind, n, size, err := r.header()
		// Audio is passed over: the length comes from the headers, and each record is opened when it is read.
		if err == nil && kind != journalAudio {
			var payload []byte
			payload, err = r.payload(size)
			if err == nil {
				err = r.keepRecord(kind, payload)
			}
		} else if err == nil {
			err = r.skip(size)
		}

		switch {
		case errors.Is(err, io.EOF) && first:
			return nil, errNoDescription
		case errors.Is(err, io.EOF):
			return r, r.rewind()
		case err != nil:
			return nil, fmt.Errorf("reading a recording in progress: %w", err)
		}

		r.samples += int64(n)
	}
}

// header reads the header of the next record; io.EOF where it is incomplete or broken.
func (r *journalReader) header() (kind byte, samples, size int, err error) {
	var header [journalHeaderSize]byte
	_, err = io.ReadFull(r.file, header[:])
	if err != nil {
		return 0, 0, 0, endOfJournal(err)
	}

	size = int(binary.BigEndian.Uint32(header[1:]))
	samples = int(binary.BigEndian.Uint32(header[5:]))
	if size > maxJournalRecord || samples*bytesPerSample > maxJournalRecord {
		return 0, 0, 0, io.EOF
	}

	switch header[0] {
	case journalDescription, journalAudio, journalPause:
		return header[0], samples, size, nil
	}

	return 0, 0, 0, io.EOF
}

// endOfJournal returns io.EOF for a record that is incomplete, and the error of a file that cannot be read now.
func endOfJournal(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

func (r *journalReader) payload(size int) ([]byte, error) {
	payload := make([]byte, size)
	_, err := io.ReadFull(r.file, payload)
	if err != nil {
		return nil, endOfJournal(err)
	}
	return payload, nil
}

// skip passes over a payload that is complete.
func (r *journalReader) skip(size int) error {
	end, err := r.file.Seek(int64(size), io.SeekCurrent)
	if err != nil {
		return err
	}

	info, err := r.file.Stat()
	if err != nil {
		return err
	}

	// Seek goes beyond the end without an error.
	if end > info.Size() {
		return io.EOF
	}

	return nil
}

// keepRecord keeps what a description or a pause says.
func (r *journalReader) keepRecord(kind byte, payload []byte) error {
	if kind == journalPause {
		var p Pause
		err := json.Unmarshal(payload, &p)
		if err != nil {
			return io.EOF
		}
		r.pauses = append(r.pauses, p)
		return nil
	}
	return json.Unmarshal(payload, &r.description)
}

// rewind makes Read begin at the start of the WAV file.
func (r *journalReader) rewind() error {
	_, err := r.file.Seek(0, io.SeekStart)
	r.rest, r.samplesLeft, r.number = wavHeader(r.samples), r.samples, 0
	return err
}

// Read implements io.Reader: the WAV file.
func (r *journalReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	clear(r.rest[:n])
	r.rest = r.rest[n:]
	return n, nil
}

// next reads the next record of audio into rest.
func (r *journalReader) next() error {
	for {
		// What is behind a broken record is not in the header.
		if r.samplesLeft == 0 {
			return io.EOF
		}

		kind, n, size, err := r.header()
		if err != nil {
			return err
		}

		payload, err := r.payload(size)
		if err != nil {
			return err
		}

		if kind != journalAudio {
			continue
		}

		r.rest, err = r.openAudio(payload)
		if err != nil {
			return err
		}

		if len(r.rest) != n*bytesPerSample {
			return fmt.Errorf("record %d has %d bytes of audio", r.number, len(r.rest))
		}

		r.samplesLeft -= int64(n)
		return nil
	}
}

// openAudio returns the samples of a record, authenticated where it is sealed.
func (r *journalReader) openAudio(payload []byte) ([]byte, error) {
	if !r.description.Sealed {
		return payload, nil
	}

	var opened bytes.Buffer
	want := envelope.Expected{AccountID: r.description.AccountID, RecordingID: r.description.RecordingID}
	_, _, err := envelope.Open(&opened, bytes.NewReader(payload), want, r.rootOf)
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", r.number, err)
	}

	numbered := opened.Bytes()
	if len(numbered) < 8 || binary.BigEndian.Uint64(numbered) != r.number {
		return nil, fmt.Errorf("record %d is another one", r.number)
	}

	r.number++
	return numbered[8:], nil
}

// wavHeader returns the header of a WAV file of two channels of 16-bit samples.
func wavHeader(samples int64) []byte {
	// The header's sizes have 32 bits: a longer recording tells less than it has.
	size := uint32(min(samples*bytesPerSample, 1<<32-64))
	h := append(make([]byte, 0, 44), "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, 36+size)
	h = append(h, "WAVEfmt "...)
	h = binary.LittleEndian.AppendUint32(h, 16)
	h = binary.LittleEndian.AppendUint16(h, 1) // PCM
	h = binary.LittleEndian.AppendUint16(h, 2)
	h = binary.LittleEndian.AppendUint32(h, liveRate)
	h = binary.LittleEndian.AppendUint32(h, liveRate*bytesPerSample)
	h = binary.LittleEndian.AppendUint16(h, bytesPerSample)
	h = binary.LittleEndian.AppendUint16(h, 16)
	h = append(h, "data"...)

	return binary.LittleEndian.AppendUint32(h, size)
}

package pcmsocket

import (
	"bytes"
	"encoding/base64"
	"strconv"
)

// audioForkProtocol is the subprotocol of mod_audio_fork, whose server sends audio as playAudio messages of any length,
// which FreeSWITCH stores as files and its application plays in order.
const audioForkProtocol = "audio.drachtio.org"

// framesPerFile is the number of frames in one file. More would delay the conversation, fewer would make FreeSWITCH
// open files too often.
const framesPerFile = 25 // 500 ms

// audioFork collects audio for mod_audio_fork.
type audioFork struct {
	rate   int    // Hz
	audio  []byte // of the file that is being collected
	frames int    // in audio
}

// add adds a frame and returns the message that is due, if any. Silence between pieces is not sent.
func (f *audioFork) add(frame []byte) []byte {
	silent := len(bytes.Trim(frame, "\x00")) == 0
	if !silent {
		f.audio = append(f.audio, frame...)
		f.frames++
	}
	if f.frames == 0 || !silent && f.frames < framesPerFile {
		return nil
	}

	message := []byte(`{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":`)
	message = strconv.AppendInt(message, int64(f.rate), 10)
	message = append(message, `,"audioContent":"`...)
	message = base64.StdEncoding.AppendEncode(message, f.audio)
	f.clear()

	return append(message, `"}}`...)
}

func (f *audioFork) clear() { f.audio, f.frames = f.audio[:0], 0 }

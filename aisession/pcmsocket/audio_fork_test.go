package pcmsocket

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func TestForksFiles(t *testing.T) {
	f := &audioFork{rate: 8000}
	loud, silent := []byte(strings.Repeat("\x01\x20", 160)), make([]byte, 320)
	var messages []string

	for i := range 40 {
		frame := loud
		if i >= 30 {
			frame = silent
		}
		if message := f.add(frame); message != nil {
			messages = append(messages, string(message))
		}
	}

	size := 0
	for _, message := range messages {
		var m struct {
			Type string
			Data struct {
				AudioContentType, AudioContent string
				SampleRate                     int
			}
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil || m.Type != "playAudio" ||
			m.Data.AudioContentType != "raw" || m.Data.SampleRate != 8000 {
			t.Fatalf("%s: %v", message, err)
		}

		raw, err := base64.StdEncoding.DecodeString(m.Data.AudioContent)
		if err != nil {
			t.Fatal(err)
		}

		size += len(raw)
	}

	if len(messages) != 2 || size != 30*320 {
		t.Errorf("%d messages with %d bytes", len(messages), size)
	}
}

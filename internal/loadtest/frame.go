package loadtest

import (
	"errors"

	"trunkline/internal/wsframe"
)

// maxFrame is the largest frame taken: a record of the largest size and its
// envelope fit well.
const maxFrame = 4 << 20

var errTooLarge = errors.New("WebSocket frame too large")

// frame is one frame from the server; payload lies in the caller's bytes.
type frame struct {
	wsframe.Header
	payload []byte
}

// parseFrame takes the first frame off b. size is its length with the header;
// when b does not hold all of it, whole is false and size the bytes known to be
// needed.
func parseFrame(b []byte) (f frame, size int, whole bool, err error) {
	h, complete, err := wsframe.ParseHeader(b)
	if err != nil || !complete {
		return frame{}, h.Size, false, err
	}
	if h.Length > maxFrame {
		return frame{}, 0, false, errTooLarge
	}
	size = h.Size + int(h.Length)
	if len(b) < size {
		return frame{}, size, false, nil
	}
	return frame{h, b[h.Size:size:size]}, size, true, nil
}

// controlFrame returns a control frame as a client sends it: masked.
func controlFrame(opcode byte, payload []byte) []byte {
	b := append(wsframe.Reserve(nil), payload...)
	return b[wsframe.Seal(b, opcode):]
}

const codeNormal = 1000

func closeFrame(code int) []byte {
	return controlFrame(wsframe.Close, wsframe.AppendClose(nil, code, ""))
}

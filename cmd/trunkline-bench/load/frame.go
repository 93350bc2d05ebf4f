package load

import (
	"errors"

	"trunkline/internal/wsframe"
)

// maxFrameBytes is the largest accepted frame, in bytes: more than a record of the largest size with
// its envelope.
const maxFrameBytes = 4 << 20

var errTooLarge = errors.New("WebSocket frame too large")

// frame is one frame from the server; payload refers to the caller's bytes.
type frame struct {
	wsframe.Header
	payload []byte
}

// parseFrame parses the first frame of b. size is its length with the header. If b does not hold
// the complete frame, whole is false and size is the number of bytes known to be needed.
func parseFrame(b []byte) (f frame, size int, whole bool, err error) {
	h, complete, err := wsframe.ParseHeader(b)
	if err != nil || !complete {
		return frame{}, h.Size, false, err
	}

	if h.Length > maxFrameBytes {
		return frame{}, 0, false, errTooLarge
	}

	size = h.Size + int(h.Length)
	if len(b) < size {
		return frame{}, size, false, nil
	}

	return frame{h, b[h.Size:size:size]}, size, true, nil
}

// controlFrame returns a client's control frame, masked.
func controlFrame(opcode byte, payload []byte) []byte {
	b := append(wsframe.BeginClientFrame(nil), payload...)
	return b[wsframe.FinishClientFrame(b, opcode):]
}

const codeNormal = 1000

func closeFrame(code int) []byte {
	return controlFrame(wsframe.Close, wsframe.AppendClose(nil, code, ""))
}

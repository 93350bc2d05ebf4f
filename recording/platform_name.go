package recording

import (
	"cmp"
	"path"
	"strings"
)

// kazooPrefix begins the names under which Kazoo stores a recording by HTTP PUT: then come the
// call id, which may have characters that an id here may not, and the format as extension.
const kazooPrefix = "call_recording_"

// UploadName returns the id of an upload with the name in its path, and completes its call. A
// name of Kazoo's tells the call; characters of it that an id must not have become "_".
func UploadName(name string, call Call) (id string, _ Call) {
	rest, ok := strings.CutPrefix(name, kazooPrefix)
	if !ok {
		return name, call
	}
	call.CallID = cmp.Or(call.CallID, strings.TrimSuffix(rest, path.Ext(rest)))
	id = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		case r < ' ' || r > '~' || r == '/':
			return r // the check of the id refuses it
		}
		return '_'
	}, name)
	return id, call
}

package recording

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// kazooPrefix begins the names under which Kazoo stores a recording by HTTP PUT: then come the
// call id, which may have characters that an id here may not, and the format as extension.
const kazooPrefix = "call_recording_"

// kazooParams are parameters that some versions of Kazoo add to such a name, with what the call's
// record says too. They add call_id and interaction_id as well, empty where they are unknown.
var kazooParams = []string{"from", "to", "caller_id_name", "caller_id_number", "cdr_id"}

// UploadParams returns the names of the query's parameters that an upload may have.
func UploadParams() []string { return append(CallParams(), kazooParams...) }

// ParseUpload returns the id and the call of an upload from the name in its path, its query and its
// headers. A name of Kazoo's tells the call; characters of it that an id must not have become "_".
// Its error (fault.KindInvalid) names every invalid field.
func ParseUpload(name string, query url.Values, header http.Header) (id string, call Call, err error) {
	rest, isKazoo := strings.CutPrefix(name, kazooPrefix)
	if isKazoo {
		// Empty parameters are unknown fields; ParseCall refuses them in other uploads.
		query = maps.Clone(query)
		maps.DeleteFunc(query, func(_ string, values []string) bool { return slices.Equal(values, []string{""}) })
	}

	call, err = ParseCall(query, header)
	if err != nil || !isKazoo {
		return name, call, err
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

	return id, call, nil
}

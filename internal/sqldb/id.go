package sqldb

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// NewID returns a new id of a row, a UUID version 7 (RFC 9562, section 5.7) as 32 hexadecimal
// digits: safe in a path and in a SIP address. Ids of one process sort in the order they were made,
// so that rows created in the same millisecond are listed in that order. An id is no secret.
func NewID() string {
	id := uuid.Must(uuid.NewV7())
	return hex.EncodeToString(id[:])
}

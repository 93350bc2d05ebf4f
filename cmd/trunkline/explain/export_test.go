package explain

import (
	"encoding/json"

	"trunkline/fanout"
)

// Why is connectionReason of a connection in JSON.
func Why(body []byte) string {
	var c fanout.Connection
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	return connectionReason(&c)
}

package explain

import (
	"encoding/json"

	"trunkline/fanout"
)

// Why calls why with the JSON of a connection.
func Why(body []byte) string {
	var c fanout.Connection
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	return connectionReason(&c)
}

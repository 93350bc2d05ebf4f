package freeswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trunkline/telephony/esl"
)

// table is a response of callcenter_config: rows of columns separated by "|". The first line has the
// column names.
type table struct {
	columns []string
	rows    [][]string
}

// get returns a column of a row, "" if the switch's version does not have the column.
func (t *table) get(row []string, column string) string {
	i := slices.Index(t.columns, column)
	if i < 0 || row[i] == "(null)" {
		return ""
	}
	return row[i]
}

var errResponse = errors.New("the answer is not a list")

// parseTable parses a response of callcenter_config. It has no escaping: freeColumn is the name of the column
// that may contain "|" and line breaks, "" for none.
func parseTable(response, freeColumn string) (table, error) {
	body, ok := strings.CutSuffix(strings.TrimRight(response, "\r\n"), "+OK")
	if !ok {
		return table{}, fmt.Errorf("%w: it does not end with +OK", errResponse)
	}
	if body == "" { // without rows there are no column names either
		return table{}, nil
	}

	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	t := table{columns: strings.Split(lines[0], "|")}
	at, width := slices.Index(t.columns, freeColumn), len(t.columns)

	for i := 1; i < len(lines); i++ {
		first, separators := i, strings.Count(lines[i], "|")
		// A line break in the free column: the row goes on in the next line.
		for separators < width-1 && i+1 < len(lines) {
			i++
			separators += strings.Count(lines[i], "|")
		}

		row := strings.Split(strings.Join(lines[first:i+1], "\n"), "|")
		extra := len(row) - width
		if extra < 0 || extra > 0 && at < 0 {
			return table{}, fmt.Errorf("%w: a row has %d columns, want %d", errResponse, len(row), width)
		}
		if extra > 0 {
			row = slices.Replace(row, at, at+extra+1, strings.Join(row[at:at+extra+1], "|"))
		}

		t.rows = append(t.rows, row)
	}

	return t, nil
}

// channelRow is a row of "show channels as json".
type channelRow struct {
	UUID           string `json:"uuid"`
	Direction      string `json:"direction"`
	CreatedEpoch   string `json:"created_epoch"`
	Name           string `json:"name"`
	CallerNumber   string `json:"cid_num"`
	Destination    string `json:"dest"`
	Context        string `json:"context"`
	PresenceID     string `json:"presence_id"`
	PresenceData   string `json:"presence_data"`
	Accountcode    string `json:"accountcode"`
	CallState      string `json:"callstate"`
	Application    string `json:"application"`
	CallUUID       string `json:"call_uuid"`
	InitialContext string `json:"initial_context"`
}

// registrationRow is a row of "show registrations as json".
type registrationRow struct {
	User  string `json:"reg_user"`
	Realm string `json:"realm"`
}

// parseRows parses a response of "show … as json". The rows are absent if there are none.
func parseRows[Row any](response string) ([]Row, error) {
	var list struct {
		Count *int  `json:"row_count"`
		Rows  []Row `json:"rows"`
	}
	if err := json.Unmarshal([]byte(response), &list); err != nil {
		return nil, fmt.Errorf("%w: %w", errResponse, err)
	}
	if list.Count == nil || *list.Count != len(list.Rows) {
		return nil, fmt.Errorf("%w: row_count is missing or not the number of rows", errResponse)
	}

	return list.Rows, nil
}

// queryTable queries a response in columns.
func (s *session) queryTable(ctx context.Context, command, freeColumn string) (table, error) {
	output, err := s.conn.API(ctx, command)
	return readTable(command, freeColumn, esl.APIResult{Output: output, Err: err})
}

// readTable parses the response of a command in columns. The error of an invalid response is not an
// error of the connection.
func readTable(command, freeColumn string, response esl.APIResult) (table, error) {
	if response.Err != nil {
		return table{}, fmt.Errorf("asking for %s: %w", command, response.Err)
	}
	t, err := parseTable(response.Output, freeColumn)
	if err != nil {
		return table{}, fmt.Errorf("reading the answer to %s: %w", command, err)
	}
	return t, nil
}

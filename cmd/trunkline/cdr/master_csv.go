package cdr

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

const csvSuffix = ".csv" // of the files of Asterisk's cdr_csv: Master.csv, and one for each account code

// csvColumns are the members of an asterisk.cdr record in the columns of a line, up to the optional ones.
var csvColumns = []string{
	"AccountCode", "Source", "Destination", "DestinationContext", "CallerID", "Channel", "DestinationChannel",
	"LastApplication", "LastData", "StartTime", "AnswerTime", "EndTime", "Duration", "BillableSeconds", "Disposition",
	"AMAFlags",
}

// The columns that settings of cdr.conf, section csv, add.
var (
	uniqueIDColumn  = []string{"UniqueID"}                            // loguniqueid
	userFieldColumn = []string{"UserField"}                           // loguserfield
	newColumns      = []string{"PeerAccount", "Linkedid", "Sequence"} // newcdrcolumns
)

// columnsOf returns the names of a line's columns. One column alone behind the fixed ones is the unique id or the
// user field; without the unique id a line cannot be told from another call's.
func columnsOf(line []string) ([]string, error) {
	fixed := len(csvColumns)
	all := slices.Clone(csvColumns)
	switch rest := len(line) - fixed; rest {
	case 1:
		all = append(all, uniqueIDColumn...)
	case 2:
		all = slices.Concat(all, uniqueIDColumn, userFieldColumn)
	case 4:
		all = slices.Concat(all, uniqueIDColumn, newColumns)
	case 5:
		all = slices.Concat(all, uniqueIDColumn, userFieldColumn, newColumns)
	default:
		return nil, fmt.Errorf("%d columns: want 17 to 21 of Asterisk's cdr_csv, with loguniqueid=yes in cdr.conf",
			len(line))
	}

	if !isUniqueID(line[fixed]) {
		return nil, errors.New("no unique id behind the AMA flags: set loguniqueid=yes in cdr.conf")
	}

	return all, nil
}

// isUniqueID reports whether a text can be a channel's unique id.
func isUniqueID(text string) bool { return text != "" && !bytes.ContainsAny([]byte(text), " \t") }

// malformedError is the error of a file that is not one of cdr_csv: other files may still be sent.
type malformedError struct{ error }

// readMasterCSV returns the lines of a file of Asterisk's cdr_csv as NDJSON bodies of asterisk.cdr records, of at
// most maxLines each. The last line may be cut off, where Asterisk is writing it: it is not read.
func readMasterCSV(content []byte, timeZone string) (bodies [][]byte, err error) {
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord = -1 // settings change
	reader.LazyQuotes = true

	var body []byte
	for lines := 0; ; lines++ {
		line, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, malformedError{err}
		}

		number, _ := reader.FieldPos(0)
		record, err := csvRecord(line, timeZone)
		if err != nil {
			return nil, malformedError{fmt.Errorf("line %d: %w", number, err)}
		}

		if lines > 0 && lines%maxLines == 0 {
			bodies, body = append(bodies, body), nil
		}

		body = append(append(body, record...), '\n')
	}

	if len(body) > 0 {
		bodies = append(bodies, body)
	}

	return bodies, nil
}

// maxLines bounds one body: a line has at most 1 KiB.
const maxLines = 5000

// csvRecord returns a line as the Cdr event of the manager interface would have it.
func csvRecord(line []string, timeZone string) ([]byte, error) {
	columns, err := columnsOf(line)
	if err != nil {
		return nil, err
	}
	record := map[string]string{"Event": "Cdr", "Time-Zone": timeZone}
	for i, name := range columns {
		record[name] = line[i]
	}
	return json.Marshal(record)
}

package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// textCheckingConnector connects to SQLite and refuses the text that PostgreSQL refuses: NUL and
// invalid UTF-8. SQLite would store both.
type textCheckingConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c textCheckingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}

	sqliteConnection, ok := conn.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's %T lacks a method that database/sql needs", conn),
			conn.Close())
	}

	return textCheckingConn{sqliteConnection}, nil
}

// sqliteConn is the set of driver interfaces that database/sql uses.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type textCheckingConn struct{ sqliteConn }

// errInvalidText is returned for a text parameter with NUL or invalid UTF-8. It does not
// contain the text.
var errInvalidText = errors.New("a text parameter has a NUL byte or invalid UTF-8")

// CheckNamedValue implements driver.NamedValueChecker: database/sql calls it
// for every parameter, also of prepared statements.
func (textCheckingConn) CheckNamedValue(v *driver.NamedValue) error {
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	if err != nil {
		return err
	}
	// Of the converted value: a driver.Valuer may have made the text.
	if text, ok := value.(string); ok && (strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text)) {
		return errInvalidText
	}
	v.Value = value
	return nil
}

package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/jsonscan"
	"trunkline/internal/report"
)

// requirement states whether a member must be present.
type requirement bool

const (
	required requirement = true
	optional requirement = false
)

// jsonObject reads a JSON object member by member and collects every error, so that a
// client learns all of them at once:
//
//	filter := identity.Filter{
//		AccountIDs: body.Strings("account_ids", optional),
//		Names:      body.Strings("names", optional),
//	}
//	if err := body.Err(invalidBody); err != nil {
//		return err
//	}
//
// Err adds an error for each member that was not read: it is unknown.
//
// It decodes a member when it is read, so that a body costs no more memory than its bytes
// and the members that the request has.
type jsonObject struct {
	raw       jsonscan.Value // an object, or nil
	readNames []string       // names of the members that were read
	path      string         // of the object in the body, "" or ending in "."
	faults    *[]fault.Field
	children  []*jsonObject

	nullIsAbsent bool // see withoutNulls
}

// maxFaults is the maximum number of errors of a body that are reported.
const maxFaults = 100

func newObject(raw jsonscan.Value) *jsonObject {
	return &jsonObject{raw: raw, faults: new([]fault.Field)}
}

// withoutNulls returns the object; of it members that are null are as if they were absent.
func (o *jsonObject) withoutNulls() *jsonObject {
	o.nullIsAbsent = true
	return o
}

// inner returns the nested object raw, which the body has at path.
func (o *jsonObject) inner(path string, raw jsonscan.Value) *jsonObject {
	inner := &jsonObject{raw: raw, path: o.path + path + ".", faults: o.faults}
	o.children = append(o.children, inner)
	return inner
}

func (o *jsonObject) fault(name, code, message string) {
	if len(*o.faults) < maxFaults {
		*o.faults = append(*o.faults, fault.Field{Field: o.path + name, Code: code, Message: message})
	}
}

// lookUp returns a member, whether or not it was read before; nil if it is absent.
func (o *jsonObject) lookUp(name string) (found jsonscan.Value) {
	o.raw.Each(func(key []byte, value jsonscan.Value) {
		if string(key) == name {
			found = value
		}
	})
	if o.nullIsAbsent && found.Kind() == jsonscan.Null {
		return nil
	}
	return found
}

// member returns a member and marks it as read. It returns nil if the member is absent or
// was read before.
func (o *jsonObject) member(name string, need requirement) jsonscan.Value {
	var found jsonscan.Value
	if !slices.Contains(o.readNames, name) {
		found = o.lookUp(name)
		o.readNames = append(o.readNames, name)
	}
	if found == nil && need == required {
		o.fault(name, "required", "is required")
	}
	return found
}

// memberOfKind is member for one that must be of a kind. For another one, including null,
// it adds an error and returns nil.
func (o *jsonObject) memberOfKind(name string, need requirement, kind jsonscan.Kind, want string) jsonscan.Value {
	found := o.member(name, need)
	if found != nil && found.Kind() != kind {
		o.fault(name, "wrong_type", "must be "+want)
		return nil
	}
	return found
}

// Has reports whether the member is present and was not read yet, for members whose absence
// differs from the zero value.
func (o *jsonObject) Has(name string) bool {
	return !slices.Contains(o.readNames, name) && o.lookUp(name) != nil
}

// String reads a string; a required one must not be empty.
func (o *jsonObject) String(name string, need requirement) string {
	found := o.memberOfKind(name, need, jsonscan.String, "a string")
	text, _ := found.Text()
	if found != nil && len(text) == 0 && need == required {
		o.fault(name, "required", "must not be empty")
	}
	return string(text)
}

// Int reads a whole number.
func (o *jsonObject) Int(name string, need requirement) int64 {
	found := o.member(name, need)
	if found == nil {
		return 0
	}

	n, err := strconv.ParseInt(string(found), 10, 64)
	if err != nil {
		o.fault(name, "wrong_type", "must be a whole number")
		return 0
	}

	return n
}

// Number reads an optional number; nil: it is absent.
func (o *jsonObject) Number(name string) *float64 {
	found := o.memberOfKind(name, optional, jsonscan.Number, "a number")
	if found == nil {
		return nil
	}

	n, err := strconv.ParseFloat(string(found), 64)
	if err != nil {
		o.fault(name, "out_of_range", "is too large")
		return nil
	}

	return &n
}

// Bool reads a boolean.
func (o *jsonObject) Bool(name string, need requirement) bool {
	return string(o.memberOfKind(name, need, jsonscan.Bool, "a boolean")) == "true"
}

// Strings reads an array of strings.
func (o *jsonObject) Strings(name string, need requirement) []string {
	var all []string
	i := 0
	for element := range o.memberOfKind(name, need, jsonscan.Array, "an array of strings").Elements() {
		text, ok := element.Text()
		if ok {
			all = append(all, string(text))
		} else {
			o.fault(name+"["+strconv.Itoa(i)+"]", "wrong_type", "must be a string")
		}

		i++
	}

	return all
}

// Object reads a nested object. It is never nil: an absent one has no members.
func (o *jsonObject) Object(name string, need requirement) *jsonObject {
	return o.inner(name, o.memberOfKind(name, need, jsonscan.Object, "an object"))
}

// Objects reads an array of objects.
func (o *jsonObject) Objects(name string, need requirement) (all []*jsonObject) {
	i := 0
	for element := range o.memberOfKind(name, need, jsonscan.Array, "an array of objects").Elements() {
		elementName := name + "[" + strconv.Itoa(i) + "]"
		if element.Kind() == jsonscan.Object {
			all = append(all, o.inner(elementName, element))
		} else {
			o.fault(elementName, "wrong_type", "must be an object")
		}

		i++
	}

	return all
}

// RawMembers returns all members as JSON, for another package's parser.
func (o *jsonObject) RawMembers() map[string]json.RawMessage {
	members := make(map[string]json.RawMessage)
	o.raw.Each(func(key []byte, value jsonscan.Value) { members[string(key)] = json.RawMessage(value) })
	// The other parser says which members are unknown.
	o.raw = nil
	return members
}

// Err returns the errors of the members as fault.KindInvalid, or nil.
func (o *jsonObject) Err(message string) error {
	o.addUnknownFaults()
	if len(*o.faults) == 0 {
		return nil
	}
	return fault.Invalid(message, *o.faults...)
}

func (o *jsonObject) addUnknownFaults() {
	var unknown []string
	o.raw.Each(func(key []byte, _ jsonscan.Value) {
		if len(unknown) < maxFaults && !slices.Contains(o.readNames, string(key)) {
			unknown = append(unknown, string(key))
		}
	})

	slices.Sort(unknown)
	for _, name := range unknown {
		o.fault(name, "unknown", "is not a field of this request")
	}

	for _, inner := range o.children {
		inner.addUnknownFaults()
	}
}

// readOnly reads a member that must be absent or equal to the stored value, a string or
// int64.
func (o *jsonObject) readOnly(name string, stored any) {
	if !o.Has(name) {
		return
	}

	equal := false
	switch stored := stored.(type) {
	case string:
		equal = o.String(name, optional) == stored
	case int64:
		equal = o.Int(name, optional) == stored
	}

	if !equal {
		o.fault(name, "read_only", "cannot be changed")
	}
}

// expiry reads a time in Unix seconds; 0 is the zero time, nil means that the member is
// absent.
func (o *jsonObject) expiry(name string) *time.Time {
	if !o.Has(name) {
		return nil
	}

	expiry := time.Time{}
	switch seconds := o.Int(name, optional); {
	case seconds < 0 || seconds > report.EndOfTime:
		o.fault(name, "out_of_range", "must be Unix seconds, of a year up to 9999")
	case seconds > 0:
		expiry = time.Unix(seconds, 0)
	}

	return &expiry
}

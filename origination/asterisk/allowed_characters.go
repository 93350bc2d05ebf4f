package asterisk

// Characters that values may have besides letters, digits and ". _ -". An AMI line ends at a line
// break, a dial string at a comma, a list of channels at "&", and the dialplan expands "${". There is
// no escaping, so a value with any other character is refused.
const (
	numberChars = "+*#"
	nameChars   = numberChars + " "
	dialChars   = numberChars + "@/:" // from the administrator
)

// Limits of values in bytes.
const (
	maxNumberBytes = 64
	maxDomainBytes = 253
	maxIDBytes     = 128 // Asterisk's limit for a unique id is 149
)

package engine

// Code says what sort of difference an event records.
type Code string

// Package bare connects the engine to the API of the bare home: it makes views from the objects there, and writes plans to
// it. The agents carry out what the Daemons say.
package bare

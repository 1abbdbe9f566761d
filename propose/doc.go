// Package propose says what would come of a change before anybody makes it: which objects change,
// what the drivers would do to the daemons of each cluster step by step, what of it destroys data,
// what is refused, and what all of that depends on.
//
// Make puts what becomes of the objects of a request in the place of those that are there, has the
// driver of each cluster that they touch carry its plans out in the view alone (engine.Project),
// and compares that with what would happen without the request. It writes nothing, and knows
// neither a platform nor a storage system: the objects and the drivers come in by Home. Package
// plans has the words of it, and what a Plan keeps.
package propose

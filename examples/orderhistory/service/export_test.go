package service

// ConsumerOf is whom a feed tells of an event.
var ConsumerOf = (*Service).consumerOf

// Before a book is written: each of its authors has to exist.
function requireAuthor() {
  const collection = getContext().getCollection();
  const book = getContext().getRequest().getBody();
  if (!Array.isArray(book.authors) || book.authors.length === 0) throw new Error("a book needs an author");
  for (const { id } of book.authors) {
    const query = {
      query: 'SELECT VALUE COUNT(1) FROM c WHERE c.id = @id AND c.type = "author"',
      parameters: [{ name: "@id", value: id }],
    };
    collection.queryDocuments(collection.getSelfLink(), query, (error, found) => {
      if (error) throw error;
      if (found[0] !== 1) throw new Error(ErrorCodes.NotFound, "the author " + id + " does not exist");
    });
  }
}

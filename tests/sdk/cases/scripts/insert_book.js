// Inserts a book and counts it with each of its authors, all or nothing. An author who does not exist is an error.
function insertBook(book) {
  const collection = getContext().getCollection();
  collection.createDocument(collection.getSelfLink(), book, (error, created) => {
    if (error) throw error;
    getContext().getResponse().setBody(created);
    book.authors.forEach((author) => count(author.id));
  });

  function count(id) {
    const link = collection.getAltLink() + "/docs/" + id;
    const accepted = collection.readDocument(link, (error, author) => {
      if (error) throw error;
      author.countOfBooks += 1;
      collection.replaceDocument(author._self, author, { etag: author._etag }, (failure) => {
        if (failure) throw failure;
      });
    });
    if (!accepted) throw new Error("there is no time left for the author " + id);
  }
}
